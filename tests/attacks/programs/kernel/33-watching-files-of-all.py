# held: watching files of all
call('fanotify_init', 0, 0); call('fanotify_init', 0x200, 0)