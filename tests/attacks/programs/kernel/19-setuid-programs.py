# held: setuid programs

for path in ('/bin/su', '/usr/bin/su', '/usr/bin/sudo', '/usr/bin/passwd', '/usr/bin/newuidmap', '/usr/bin/mount'):
  go(lambda: (subprocess.run([path, '--version']), granted))
import shutil; shutil.copy(os.path.realpath(sys.executable), 'x'); os.chmod('x', 0o6755)
code = 'import os; os.geteuid() == 0 and print("GRAN" + "TED")'
go(lambda: subprocess.run(['./x', '-c', code], env={**os.environ, 'PYTHONHOME': sys.base_prefix}))
