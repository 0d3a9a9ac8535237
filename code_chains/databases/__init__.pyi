from .executor import DatabaseExecutor as DatabaseExecutor
