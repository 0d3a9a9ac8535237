"""The server of the page of lessons: a list of them, a page for each, and the view of the teacher."""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from code_chains.apps.page.address import Address
from code_chains.apps.page.lessons import LessonShelf
from code_chains.apps.program_queue import ProgramQueue
from code_chains.errors import InputError, needs

with needs("ui", "command", "serve"):
    from fastapi import FastAPI, Request, Response
    from fastapi.responses import PlainTextResponse, RedirectResponse
    from nicegui import ui

    from code_chains.apps.page.guard import new_client_id
    from code_chains.apps.page.hosting import begin_page, host_app, with_pages
    from code_chains.apps.page.lesson_class import LessonClass
    from code_chains.apps.page.lesson_page import LessonPage, show_lessons


def create_lesson_app(shelf: LessonShelf, queue: ProgramQueue, class_key: str) -> FastAPI:
    """Create the application that serves lessons; wrap it in a `Guard`.

    Args:
        shelf: The lessons, closed with the application.
        queue: Has programs wait for their turn.
        class_key: The secret of whoever may see and stop what all learners run.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(shelf.close)

    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)

    @app.get("/")
    def first() -> Response:
        return RedirectResponse("lessons")

    @app.post("/forget")
    async def forget(request: Request) -> Response:
        await shelf.forget(request.state.client_id)
        request.state.client_id = new_client_id()
        return PlainTextResponse("")

    @ui.page("/lessons", title="Lessons · code_chains", language="en-US")
    async def all_lessons(request: Request) -> None:
        begin_page(request)
        show_lessons(shelf, await asyncio.to_thread(shelf.lessons), request.state.client_id)

    @ui.page("/lessons/{name}", title="Lesson · code_chains", language="en-US")
    async def lesson(request: Request, name: str) -> Response | None:
        await asyncio.to_thread(shelf.lessons)
        try:
            desk = shelf.desk(request.state.client_id, name, queue)
        except InputError as error:
            return PlainTextResponse(str(error), 404)
        begin_page(request)
        ui.page_title(desk.work.lesson.title)
        LessonPage(shelf, desk)
        return None

    @ui.page("/class", title="Class · code_chains", language="en-US")
    def class_view(k: str = "") -> Response | None:
        if not hmac.compare_digest(k.encode(), class_key.encode()):
            return PlainTextResponse("Open the address of the class that `code-chains serve` printed.", 401)
        LessonClass(shelf)
        return None

    return with_pages(app)


def serve_lessons(
    shelf: LessonShelf,
    address: Address,
    *,
    concurrency: int = 4,
    open_browser: bool = True,
    folder: Path | None = None,
) -> None:
    """Serve lessons until interrupted.

    Args:
        shelf: The lessons.
        address: Where they are served.
        concurrency: How many programs run at once.
        open_browser: Whether to open the page in a browser.
        folder: Where the secret of a page with a token is kept over restarts; None for nowhere.

    Raises:
        ConfigurationError: The address is not available.
    """
    class_key = secrets.token_urlsafe(24)
    app = create_lesson_app(shelf, ProgramQueue(concurrency), class_key)
    host_app(app, address, class_key=class_key, open_browser=open_browser, folder=folder, is_class=True)
