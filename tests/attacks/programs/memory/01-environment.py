# held: environment
print(dict(os.environ), libc.getenv(b'HOST_TOKEN')); import posix; print(posix.environ)