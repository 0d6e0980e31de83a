// Pages that were opened from a file may read no other pages, from which a search takes its excerpts. There the texts
// come from one script, which docs/search_texts.py writes.
(() => {
  if (location.protocol !== "file:") return;
  const root = new URL(document.documentElement.dataset.content_root || "./", location.href).href;
  const usual = window.fetch;
  let texts;
  const load = () =>
    (texts ??= new Promise((done) => {
      const script = document.createElement("script");
      script.src = `${root}_static/search-texts.js`;
      script.onload = () => done(window.siteTexts);
      script.onerror = () => done({});
      document.head.append(script);
    }));
  window.fetch = (address, ...rest) => {
    const whole = new URL(address, location.href).href;
    const name = decodeURI(whole.slice(root.length).split(/[#?]/)[0]);
    if (!whole.startsWith(root) || !name.endsWith(".html")) return usual(address, ...rest);
    return load().then((pages) => ({ text: () => Promise.resolve(pages[name] ?? "") }));
  };
})();
