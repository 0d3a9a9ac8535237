# bounded: shared memory of a program that cannot be read

import shutil; shutil.copy(os.path.realpath(sys.executable), host['mark']); os.chmod(host['mark'], 0o111)
code = '''import mmap, time
keep = [mmap.mmap(-1, 100 << 20) for _ in range(12)]
for m in keep: m.write(b'x' * (100 << 20)); m.madvise(mmap.MADV_DONTNEED)
time.sleep(99)'''
subprocess.run(['./' + host['mark'], '-c', code], env={**os.environ, 'PYTHONHOME': sys.base_prefix})
