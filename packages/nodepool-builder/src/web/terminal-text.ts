/* oxlint-disable no-control-regex -- a terminal's sequences begin with the control character ESC */
import { escapeHtml } from './html.ts';

const COLOURS = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'];

/** Terminal sequences: with parameters (CSI), titles and links (OSC), and all others of two characters. */
const SEQUENCE =
  /\x1b\[([0-?]*)[ -/]*([@-~])|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]?|\x9b[0-?]*[ -/]*[@-~]/g;

/** Control characters as they are escaped in a build log, see `visible` in image-builder. */
const ESCAPED = /\\x([01][\da-f]|7f|[89][\da-f])/g;

/**
 * Renders a part of a log as HTML. Colours become classes. All other terminal sequences, and lines that a progress bar
 * has overwritten, are removed. Each line begins without colour.
 */
export function terminalHtml(text: string): string {
  return text
    .replaceAll(ESCAPED, (_, code: string) => String.fromCodePoint(Number.parseInt(code, 16)))
    .split('\n')
    .map((line) => lineHtml(lastWritten(line)))
    .join('\n');
}

/** Returns the text that a line finally shows, because a carriage return restarts it. */
function lastWritten(line: string): string {
  return line.split('\r').findLast((text) => text !== '') ?? '';
}

function lineHtml(line: string): string {
  if (!line.includes('\x1b') && !line.includes('\x9b')) return plain(line);
  let html = '';
  let position = 0;
  let classes: ReadonlySet<string> = new Set();
  const add = (part: string): void => {
    if (part === '') return;
    html += classes.size > 0 ? `<span class="${[...classes].join(' ')}">${plain(part)}</span>` : plain(part);
  };
  for (const match of line.matchAll(SEQUENCE)) {
    add(line.slice(position, match.index));
    position = match.index + match[0].length;
    if (match[2] === 'm') classes = restyle(classes, match[1] ?? '');
  }
  add(line.slice(position));
  return html;
}

/** Escapes text and removes control characters. */
function plain(text: string): string {
  return escapeHtml(text.replaceAll(/[^\P{Cc}\t]/gu, ''));
}

/** Applies the numbers of a "select graphic rendition". */
function restyle(before: ReadonlySet<string>, parameters: string): ReadonlySet<string> {
  const classes = new Set(before);
  const numbers = parameters.split(/[;:]/).map(Number);
  for (let index = 0; index < numbers.length; index += 1) {
    const number = numbers[index] ?? 0;
    if (number === 0) classes.clear();
    else if (number === 1) classes.add('c-bold');
    else if (number === 2) classes.add('c-dim');
    else if (number === 4) classes.add('c-underline');
    else if (number === 22) removeAll(classes, ['bold', 'dim']);
    else if (number === 24) removeAll(classes, ['underline']);
    else if (number === 38 || number === 48) index += numbers[index + 1] === 5 ? 2 : 4;
    else if ((number >= 30 && number <= 39) || (number >= 90 && number <= 97)) {
      removeAll(classes, COLOURS);
      const colour = COLOURS[number % 10];
      if (number !== 39 && colour !== undefined) classes.add(`c-${colour}`);
    }
  }
  return classes;
}

function removeAll(classes: Set<string>, names: readonly string[]): void {
  for (const name of names) classes.delete(`c-${name}`);
}
