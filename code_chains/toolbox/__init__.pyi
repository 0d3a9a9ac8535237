from .toolbox import Toolbox as Toolbox
from .toolbox import check_tool_name as check_tool_name
