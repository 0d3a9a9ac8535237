// What the page does in the browser itself: it keeps the work in view, receives dropped files, and copies text.
(() => {
  const GAP = 12;
  const PARTS = { program: [".program"], approval: [".approval"], outcome: [".outcome"], answer: [".answer"], end: [":scope > .above", ".answer", ":scope > .below"] };
  const seen = new WeakSet();
  let turns, latest, isFollowing = false;

  const visibleArea = () => ({
    top: document.querySelector("header").getBoundingClientRect().bottom + GAP,
    bottom: document.querySelector("footer").getBoundingClientRect().top - GAP,
  });

  // While a dialog is open, Quasar holds the page still by moving all of it.
  const isCovered = () => document.body.classList.contains("q-body--prevent-scroll");

  // The rectangle of the part on which work goes on, or of the whole turn while there is none.
  function activeRect() {
    const parts = [];
    for (const selector of PARTS[latest.dataset.part] ?? []) {
      const part = latest.querySelector(selector);
      if (part?.getBoundingClientRect().height) parts.push(part.getBoundingClientRect());
    }
    if (!parts.length) return latest.querySelector(".question").getBoundingClientRect();
    return { top: Math.min(...parts.map((part) => part.top)), bottom: Math.max(...parts.map((part) => part.bottom)) };
  }

  function reveal() {
    if (!isFollowing || !latest?.isConnected || isCovered()) return;
    const printed = latest.dataset.part === "outcome" && latest.querySelector(".printed");
    if (printed) printed.scrollTop = printed.scrollHeight;
    const area = visibleArea(), part = activeRect();
    let distance = 0;
    // What is higher than the area shows its end, which is where it grows.
    if (part.bottom > area.bottom) distance = part.bottom - area.bottom;
    else if (part.top < area.top) distance = Math.max(part.top - area.top, part.bottom - area.bottom);
    if (Math.abs(distance) >= 1) window.scrollBy({ top: distance, behavior: "instant" });
  }

  function measure() {
    if (isCovered()) return;
    const area = visibleArea();
    document.documentElement.style.setProperty("--visible-height", `${area.bottom - area.top}px`);
    reveal();
  }

  const resizes = new ResizeObserver(measure);

  function followLatest() {
    const last = turns.querySelector(":scope > .turn:last-of-type");
    if (last === latest) return;
    if (latest) resizes.unobserve(latest);
    const isNew = last && !seen.has(last);
    latest = last;
    if (!latest) return;
    resizes.observe(latest);
    seen.add(latest);
    if (!isNew) return; // The turn after it was undone: the reader stays where they are.
    isFollowing = true;
    const area = visibleArea();
    window.scrollBy({ top: latest.getBoundingClientRect().top - area.top, behavior: "instant" });
  }

  // Whoever scrolls back, or turns to what is finished, reads: the page must not move under their eyes.
  function handleReading(event) {
    const isFinished = latest?.dataset.part === "end";
    if (isFinished && turns?.contains(event.target)) isFollowing = false;
    if (event.type === "wheel" && event.deltaY < 0) isFollowing = false;
    if (event.type === "touchmove") isFollowing = false;
    if (event.type === "pointerdown" && event.target === document.documentElement) isFollowing = false;
    const isTyping = event.target.closest?.("textarea, input, .cm-content");
    if (event.type === "keydown" && !isTyping && ["PageUp", "ArrowUp", "Home"].includes(event.key)) isFollowing = false;
  }

  function handleScroll() {
    if (isFollowing || !latest?.isConnected || latest.dataset.part === "end") return;
    isFollowing = Math.abs(activeRect().bottom - visibleArea().bottom) < 4 * GAP;
  }

  const isDark = () => document.body.classList.contains("body--dark");

  // The editor is drawn a moment later, and its field has no name of its own. What it shows is set here: a change by the
  // server would bring the program as the server knows it, without what is being typed.
  function focusEditor(element, label, description, key) {
    const field = element?.querySelector(".cm-content");
    if (!element?.isConnected) return;
    if (!field) { requestAnimationFrame(() => focusEditor(element, label, description, key)); return; }
    field.setAttribute("aria-label", label);
    field.setAttribute("aria-describedby", description);
    field.focus();
    const component = getElement(element), editor = component.editor;
    const draft = drafts.openEdit(key), typed = editor.state.doc.toString();
    component.setTheme(isDark() ? "githubDark" : "githubLight");
    // Who has typed in the meantime, over a slow connection, goes on from there.
    if (typed !== component.value) drafts.keepEdit(key, typed);
    else if (draft && draft !== typed)
      editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: draft } });
    // Whatever changes the text is drawn: also what no event of the keyboard tells.
    new MutationObserver(() => drafts.keepEdit(key, editor.state.doc.toString()))
      .observe(field, { childList: true, subtree: true, characterData: true });
  }
  window.focusEditor = focusEditor;
  window.readEditor = (element) => (element && getElement(element)?.editor?.state.doc.toString()) ?? null;

  window.copyText = async (element) => {
    // Lines of a program are elements of their own; those of an answer are as its layout breaks them.
    const text = element.querySelector(".line") ? element.textContent : element.innerText;
    return Quasar.copyToClipboard(text).then(() => true, () => false);
  };

  // Dropped files take the way of chosen ones.
  function handleDrop(event) {
    if (![...(event.dataTransfer?.types ?? [])].includes("Files")) return;
    event.preventDefault(); // The browser would open the file instead of the page.
    document.body.classList.toggle("dropping", event.type === "dragover");
    if (event.type !== "drop") return;
    const input = document.querySelector(".composer input[type=file]");
    input.files = event.dataTransfer.files;
    input.dispatchEvent(new Event("change"));
  }

  // What is typed stays in this browser, by the conversation: the connection, the server and the turn may be gone.
  const PREFIX = "code_chains ", MOST = 60;
  const conversation = () => document.querySelector(".page")?.dataset.conversation ?? "";
  const nameOf = (key) => `${PREFIX}${conversation()} ${key}`;
  const recall = (name) => { try { return JSON.parse(localStorage.getItem(name)); } catch { return null; } };

  function store(name, value) {
    try {
      if (value) localStorage.setItem(name, JSON.stringify({ ...value, time: Date.now() }));
      else localStorage.removeItem(name);
      const kept = Object.keys(localStorage).filter((one) => one.startsWith(PREFIX));
      if (kept.length <= MOST) return;
      kept.sort((one, other) => (recall(one)?.time ?? 0) - (recall(other)?.time ?? 0));
      for (const old of kept.slice(0, kept.length - MOST)) localStorage.removeItem(old);
    } catch {
      Quasar.Notify.create({ message: "What you type is too long to be kept in this browser.", position: "top", group: "draft" });
    }
  }

  const drafts = window.drafts = {
    conversation,
    keep: (text) => { if (conversation()) store(nameOf("question"), text && { text }); },
    // What was asked is a draft until its turn has ended: the server may be killed before.
    moveOn: (text, next) => { if (text) store(nameOf("asked"), { text }); drafts.keep(next); },
    keepEdit: (key, code) => { if (typeof code === "string") store(nameOf(key), { code, isOpen: true }); },
    openEdit: (key) => {
      const edit = recall(nameOf(key));
      if (edit) drafts.keepEdit(key, edit.code);
      return edit?.code ?? "";
    },
    // What was typed since is still to be sent.
    send: (key, code) => { if (recall(nameOf(key))?.code === code) store(nameOf(key)); },
    closeEdit: (key, how) => {
      const edit = recall(nameOf(key));
      store(nameOf(key), how === "cancelled" && edit && { ...edit, isOpen: false });
      if (how === "cancelled") requestAnimationFrame(() => document.querySelector(`[data-edit="${key}"]`)?.focus());
      else questionField()?.focus();
    },
    forget: () => { for (const name of Object.keys(localStorage)) if (name.startsWith(PREFIX)) localStorage.removeItem(name); },
  };
  window.forget = async () => {
    const response = await fetch("forget", { method: "POST" }).catch(() => null);
    if (!response?.ok) return;
    drafts.forget();
    location.replace(location.pathname);
  };
  const questionField = () => document.querySelector(".composer textarea");

  const isDisplayed = (asked) => latest?.querySelector(".question").textContent.slice(0, 1000) === asked.trim().slice(0, 1000);
  let shown = "";
  const reopened = new Set();
  function restore() {
    const id = conversation(), field = questionField();
    if (!id || !field) return;
    if (id !== shown) {
      shown = id;
      const address = new URL(location.href);
      address.searchParams.set("c", id);
      history.replaceState(history.state, "", address);
      const asked = recall(nameOf("asked"))?.text;
      const draft = recall(nameOf("question"))?.text || (asked && !isDisplayed(asked) && asked);
      if (draft && !field.value) {
        field.value = draft;
        field.dispatchEvent(new Event("input", { bubbles: true }));
      }
    }
    const asked = latest?.dataset.part === "end" && recall(nameOf("asked"))?.text;
    if (asked && isDisplayed(asked)) store(nameOf("asked"));
    for (const button of document.querySelectorAll("[data-edit]")) {
      const name = nameOf(button.dataset.edit);
      if (reopened.has(name)) continue;
      reopened.add(name);
      if (recall(name)?.isOpen) button.click();
    }
    showOrphans(id);
  }

  // Edits of turns that were undone, perhaps in another tab.
  function showOrphans(id) {
    const names = Object.keys(localStorage).filter((name) => name.startsWith(`${PREFIX}${id} `) && recall(name)?.isOpen);
    const name = names.find((one) => !document.querySelector(`[data-edit="${one.split(" ").pop()}"]`));
    let note = document.querySelector(".orphan");
    if (note?.dataset.name === name) return;
    note?.remove();
    if (!name || latest?.dataset.part !== "end" && latest) return; // What runs is not undone.
    note = document.createElement("p");
    note.className = "notice orphan";
    note.dataset.name = name;
    note.setAttribute("role", "status");
    note.append("The program that you were editing is kept, though its turn was undone. ");
    for (const [label, act] of [["Copy", () => Quasar.copyToClipboard(recall(name).code)], ["Discard", () => { store(name); showOrphans(id); }]]) {
      const button = document.createElement("button");
      button.textContent = label;
      button.addEventListener("click", act);
      note.append(button, " ");
    }
    turns.after(note);
  }

  function showTimes() {
    for (const time of document.querySelectorAll("time:not([data-local])")) {
      time.textContent = new Date(time.dateTime).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
      time.dataset.local = "";
    }
  }

  function start() {
    turns = document.querySelector(".turns");
    if (!turns || !document.querySelector("footer")) return false;
    new MutationObserver(() => { followLatest(); requestAnimationFrame(reveal); })
      .observe(turns, { childList: true, subtree: true, characterData: true, attributes: true, attributeFilter: ["data-part", "class"] });
    turns.addEventListener("load", reveal, true); // Images; the event does not bubble.
    resizes.observe(document.querySelector("footer"));
    window.addEventListener("resize", measure);
    window.addEventListener("scroll", handleScroll, { passive: true });
    for (const kind of ["wheel", "touchmove", "pointerdown", "keydown"])
      window.addEventListener(kind, handleReading, { passive: true, capture: true });
    for (const kind of ["dragover", "dragleave", "drop"]) window.addEventListener(kind, handleDrop);
    document.addEventListener("input", (event) => { if (event.target === questionField()) drafts.keep(event.target.value); }, true);
    new MutationObserver(() => { showTimes(); restore(); })
      .observe(document.body, { childList: true, subtree: true, attributes: true, attributeFilter: ["data-conversation", "data-edit", "data-part"] });
    restore();
    followLatest();
    measure();
    return true;
  }

  if (!start()) {
    const mounting = new MutationObserver(() => { if (start()) mounting.disconnect(); });
    mounting.observe(document.body, { childList: true, subtree: true });
  }
})();
