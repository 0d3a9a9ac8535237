# clean: paths of imports

sys.path[:] = ['/tmp']; sys.meta_path.clear(); sys.path_hooks.clear(); sys.path_importer_cache.clear()
