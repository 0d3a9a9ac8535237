# plain_artifacts: picture that is none

open('x.png', 'wb').write(b'\x89PNG\r\n' + b'\xff' * 9999)
open('y.svg', 'w').write('<!ENTITY a SYSTEM "file:///etc/passwd">')
