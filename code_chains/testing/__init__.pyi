from .contracts import ExecutorContract as ExecutorContract
from .contracts import ScriptedExecutor as ScriptedExecutor
from .contracts import SessionContract as SessionContract
from .models import ScriptedModel as ScriptedModel
from .models import asks_for_code as asks_for_code
