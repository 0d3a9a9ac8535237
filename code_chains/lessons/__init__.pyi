from .gate import HintGate as HintGate
from .grade import GradeChain as GradeChain
from .lesson import Lesson as Lesson
from .lesson import Step as Step
from .progress import Progress as Progress
from .reading import read_lesson as read_lesson
from .tutor import TutorChain as TutorChain
from .work import LearnerWork as LearnerWork
