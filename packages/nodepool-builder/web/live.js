// Follows the server's events. Without a connection, the page shows that it is not current.
const live = document.querySelector('#live');

/** Milliseconds after which a silent connection counts as lost. The server sends something every 15 s. */
const SILENCE = 40_000;

/**
 * Opens a stream of events, again and again.
 *
 * @param address returns the address of the stream, from the id of its last event
 * @param listeners by the name of the event; each gets its data
 * @param text returns what the header shows of a live page
 */
export function follow(address, listeners, text) {
  let events;
  let silence;
  let last = '';
  let current = new Date();
  const connect = () => {
    events = new EventSource(address(last));
    for (const [name, listener] of Object.entries(listeners)) {
      events.addEventListener(name, ({ data, lastEventId }) => {
        last = lastEventId;
        isLive();
        listener(JSON.parse(data));
      });
    }
    events.addEventListener('alive', isLive);
    events.addEventListener('open', isLive);
    // The browser gives up after an error of a proxy.
    events.addEventListener('error', () => isLost(events.readyState === EventSource.CLOSED ? 5000 : SILENCE));
  };
  const again = () => {
    isLost(SILENCE);
    events.close();
    connect();
  };
  const isLive = () => {
    current = new Date();
    document.body.classList.remove('lost');
    live.textContent = text(current.toLocaleTimeString());
    clearTimeout(silence);
    silence = setTimeout(again, SILENCE);
  };
  const isLost = (pause) => {
    document.body.classList.add('lost');
    live.textContent = `Not connected. This is the state at ${current.toLocaleTimeString()}; trying again`;
    clearTimeout(silence);
    silence = setTimeout(again, pause);
  };
  connect();
  return {
    /** Ends the stream; nothing more will come. */
    end(reason) {
      events.close();
      clearTimeout(silence);
      live.textContent = reason;
    },
  };
}
