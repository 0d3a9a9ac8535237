# held: reboot

got('reboot', libc.reboot(0)); got('swapon', libc.swapon(b'/box/x', 0)); got('swapoff', libc.swapoff(b'/box/x'))
got('acct', libc.acct(None))
