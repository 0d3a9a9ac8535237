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

  // The editor is drawn a moment later, and its field has no name of its own.
  function focusEditor(element, label, description) {
    const field = element?.querySelector(".cm-content");
    if (!element?.isConnected) return;
    if (!field) { requestAnimationFrame(() => focusEditor(element, label, description)); return; }
    field.setAttribute("aria-label", label);
    field.setAttribute("aria-describedby", description);
    field.focus();
  }
  window.focusEditor = focusEditor;

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
    new MutationObserver(showTimes).observe(document.body, { childList: true, subtree: true });
    followLatest();
    measure();
    return true;
  }

  if (!start()) {
    const mounting = new MutationObserver(() => { if (start()) mounting.disconnect(); });
    mounting.observe(document.body, { childList: true, subtree: true });
  }
})();
