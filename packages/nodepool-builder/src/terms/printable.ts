import { format } from 'node:util';
import { isJournal, prioritized } from './journal.ts';

/** Control characters except tab and line feed, line separators, and characters that change the writing direction. */
const CONTROL = /[^\P{Cc}\n\t]|[\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

/** Sequences that change colour and weight (SGR), and all {@link CONTROL} characters. */
const COLOUR_OR_CONTROL = new RegExp(`(\\x1b\\[[\\d;]{0,20}m)|${CONTROL.source}`, 'gu');

/**
 * Replaces control characters with their codes, so that no terminal interprets them. JSON stays valid, with the same
 * values.
 *
 * @param keepsColours true for a terminal, where colours are shown and do no harm
 */
export function printable(text: string, keepsColours = false): string {
  return text.replace(keepsColours ? COLOUR_OR_CONTROL : CONTROL, (found, colour?: unknown) =>
    typeof colour === 'string' ? colour : `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** Joins the lines of a message. Errors of OpenSSL or a cloud, and file names, may have several lines. */
export function oneLine(text: string): string {
  if (!text.includes('\n')) return text;
  const lines = text.split('\n').map((line) => line.trim());
  return lines.filter(Boolean).join(' ');
}

/**
 * Makes everything that is printed through the console {@link printable}. In the journal, lines on standard error are
 * errors, unless they have another priority.
 *
 * @returns restores the console
 */
export function guardConsole(): () => void {
  const { log, error } = console;
  console.log = (...values: readonly unknown[]) => {
    log(printable(format(...values), process.stdout.isTTY));
  };
  console.error = (...values: readonly unknown[]) => {
    const text = printable(format(...values), process.stderr.isTTY);
    error(isJournal('stderr') ? prioritized(text, 'error') : text);
  };
  return () => {
    Object.assign(console, { log, error });
  };
}
