// Follows a log, and searches in it. The server sends each part as HTML that it has escaped.
import { follow as followEvents } from './live.js';

const log = document.querySelector('#log');
const follow = document.querySelector('#follow');
const search = document.querySelector('#search');
const found = document.querySelector('#found');

/** Characters of the log that the page keeps. */
const MOST_TEXT = 10_000_000;
const MOST_MATCHES = 2000;

let waiting = [];
let shownText = 0;

/** Appends the parts that came since the last frame. */
function append() {
  const html = waiting.map((part) => `<span>${part}</span>`).join('');
  waiting = [];
  const template = document.createElement('template');
  template.innerHTML = html;
  shownText += template.content.textContent.length;
  for (const part of template.content.children) heights.observe(part);
  log.append(template.content);
  while (shownText > MOST_TEXT && log.childElementCount > 1) {
    shownText -= log.firstElementChild.textContent.length;
    log.firstElementChild.remove();
    document.querySelector('#cut').hidden = false;
  }
  if (search.value !== '') scheduleSearch();
}

const events = followEvents(
  (last) => (last === '' ? log.dataset.events : `${log.dataset.events}?offset=${encodeURIComponent(last)}`),
  {
    lines: ({ html }) => {
      if (waiting.length === 0) requestAnimationFrame(append);
      waiting.push(html);
    },
    end: ({ reason }) => events.end(reason),
  },
  () => 'live',
);

/** The last position that the reader or the script chose. */
let position = { top: 0, height: 0 };

function scrollToEnd() {
  if (follow.checked) log.scrollTop = log.scrollHeight;
  position = { top: log.scrollTop, height: log.scrollHeight };
}

// The browser learns the height of a part once it is in sight, and each time the end moves.
const heights = new ResizeObserver(scrollToEnd);

/** Following ends when the reader scrolls up, and goes on at the end of the log. */
log.addEventListener('scroll', () => {
  const { scrollTop: top, scrollHeight: height, clientHeight } = log;
  if (height - top - clientHeight < 40) follow.checked = true;
  else if (height === position.height && top < position.top) follow.checked = false;
  position = { top, height };
});
follow.addEventListener('change', scrollToEnd);

/** Shows what has changed of the build, apart from its log. */
async function updateFacts() {
  const response = await fetch(location.href);
  if (!response.ok) return;
  const page = new DOMParser().parseFromString(await response.text(), 'text/html');
  document.querySelector('#facts').replaceWith(page.querySelector('#facts'));
}

const { list, id } = log.dataset;
const changes = new EventSource('/api/v1/events');
changes.addEventListener('change', ({ data }) => {
  const changed = JSON.parse(data);
  if (changed[list]?.includes(id) || changed.uploads?.length > 0) updateFacts().catch(() => {});
});

let matches = [];
let current = -1;
let timer;

function scheduleSearch() {
  clearTimeout(timer);
  timer = setTimeout(findMatches, 200);
}

/** Finds all places of the text, and marks them without changing the document. */
function findMatches() {
  const text = search.value.toLowerCase();
  matches = [];
  if (text !== '') for (const part of log.children) findIn(part, text);
  CSS.highlights?.set('found', new Highlight(...matches));
  current = Math.min(current, matches.length - 1);
  showCount();
}

function findIn(part, text) {
  const nodes = [];
  let all = '';
  const walker = document.createTreeWalker(part, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    nodes.push({ node: walker.currentNode, start: all.length });
    all += walker.currentNode.data;
  }
  const folded = all.toLowerCase();
  // Some letters have another length in lower case; their offsets would be wrong.
  const searched = folded.length === all.length ? folded : all;
  const place = (offset) => {
    const { node, start } = nodes.findLast((one) => one.start <= offset);
    return [node, offset - start];
  };
  for (let at = searched.indexOf(text); at !== -1; at = searched.indexOf(text, at + text.length)) {
    if (matches.length >= MOST_MATCHES) return;
    const range = document.createRange();
    range.setStart(...place(at));
    range.setEnd(...place(at + text.length));
    matches.push(range);
  }
}

function showCount() {
  const more = matches.length >= MOST_MATCHES ? ' or more' : '';
  const at = current >= 0 ? `${current + 1} of ` : '';
  found.textContent = search.value === '' ? '' : `${at}${matches.length}${more} found`;
}

function go(step) {
  if (matches.length === 0) return;
  // The search backwards begins with the last one.
  current = current === -1 && step === -1 ? matches.length - 1 : current + step;
  current = (current + matches.length) % matches.length;
  CSS.highlights?.set('current', new Highlight(matches[current]));
  follow.checked = false;
  const { top } = matches[current].getBoundingClientRect();
  log.scrollTop += top - log.getBoundingClientRect().top - log.clientHeight / 2;
  showCount();
}

search.addEventListener('input', () => {
  current = -1;
  CSS.highlights?.delete('current');
  scheduleSearch();
});
search.addEventListener('keydown', (event) => {
  if (event.key !== 'Enter') return;
  event.preventDefault();
  findMatches();
  go(event.shiftKey ? -1 : 1);
});
document.querySelector('#next').addEventListener('click', () => go(1));
document.querySelector('#previous').addEventListener('click', () => go(-1));
document.querySelector('#tools').hidden = false;
