import { fstatSync } from 'node:fs';
import { format } from 'node:util';

/** Control characters except tab and line feed, line separators, and characters that change the writing direction. */
const CONTROL = /[^\P{Cc}\n\t]|[\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

/** Sequences that change colour and weight (SGR), and all {@link CONTROL} characters. */
const COLOUR_OR_CONTROL = new RegExp(`(\\x1b\\[[\\d;]{0,20}m)|${CONTROL.source}`, 'gu');

/**
 * Replaces control characters by their codes, so that no terminal obeys them. JSON stays valid, with the same values.
 *
 * @param keepsColours true for a terminal, where colours are shown and do no harm
 */
export function printable(text: string, keepsColours = false): string {
  return text.replace(keepsColours ? COLOUR_OR_CONTROL : CONTROL, (found, colour?: unknown) =>
    typeof colour === 'string' ? colour : `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** Joins the lines of a message: those of OpenSSL and of clouds may have several, and so may the names of files. */
export function oneLine(text: string): string {
  if (!text.includes('\n')) return text;
  const lines = text.split('\n').map((line) => line.trim());
  return lines.filter(Boolean).join(' ');
}

/** Priorities of syslog, by level. */
const PRIORITIES = { error: 3, warn: 4, info: 6, debug: 7 } as const;

/** File descriptors of the streams of this process. */
const DESCRIPTORS = { stdout: 1, stderr: 2 } as const;

/** True if a stream of this process goes to the journal of systemd (systemd.exec(5), `JOURNAL_STREAM`). */
export function isJournal(stream: keyof typeof DESCRIPTORS): boolean {
  const { JOURNAL_STREAM: journal } = process.env;
  if (journal === undefined) return false; // children of a service inherit it, whatever their streams are
  const { dev, ino } = fstatSync(DESCRIPTORS[stream], { bigint: true });
  return journal === `${dev}:${ino}`;
}

/** Gives each line the priority that the journal takes from its beginning (sd-daemon(3)), unless it has one. */
export function prioritized(text: string, level: keyof typeof PRIORITIES): string {
  return text.replaceAll(/^(?!<\d>)/gm, `<${PRIORITIES[level]}>`);
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
