# plain_artifacts: working directory moved away

os.makedirs('/tmp/y'); os.chdir('/tmp'); go(os.rename, '/box', '/tmp/z'); go(os.symlink, '/', '/box')
go(os.chmod, '/box', 0)
