// The search runs in a worker, and browsers start no workers for pages that are opened as files. There
// a hidden frame does its work, so that a copy of the site on a disk can be searched, too.
// The offline plugin goes by the name of this file: it adds no script of its own from elsewhere.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.title = "Search";
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.ready = new Promise((begin) => {
        const script = this.inside.document.createElement("script");
        script.src = address;
        script.onload = begin;
        this.inside.document.body.append(script);
      });
    }

    async postMessage(data) {
      await this.ready;
      this.inside.dispatchEvent(new MessageEvent("message", { data }));
    }

    terminate() {
      this.inside.frameElement.remove();
    }
  };
}
