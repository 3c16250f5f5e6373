// A Worker where a page is opened as a file, for the search: browsers start none there. The script runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.append(this.frame)
      const {contentWindow: inside, contentDocument: page} = this.frame
      const load = src => new Promise((loaded, failed) => {
        page.body.append(Object.assign(page.createElement("script"), {src, onload: loaded, onerror: failed}))
      })
      inside.importScripts = (...urls) => urls.reduce((before, next) => before.then(() => load(next)), Promise.resolve())
      inside.postMessage = data => {
        const message = new MessageEvent("message", {data})
        this.dispatchEvent(message)
        this.onmessage?.(message)
      }
      this.ready = load(new URL(url, location).href)
    }
    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", {data})))
    }
    terminate() {
      this.frame.remove()
    }
  }
}
