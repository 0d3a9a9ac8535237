# held: personality

got('personality', libc.personality(0x0040000)); got('personality', libc.personality(0x0400000))
