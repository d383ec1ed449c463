import { fstatSync } from 'node:fs';

/** Priorities of syslog, by level. */
const PRIORITIES = { error: 3, warn: 4, info: 6, debug: 7 } as const;

/** File descriptors of the streams of this process. */
const DESCRIPTORS = { stdout: 1, stderr: 2 } as const;

/** Returns whether a stream of this process goes to the journal of systemd (systemd.exec(5), `JOURNAL_STREAM`). */
export function isJournal(stream: keyof typeof DESCRIPTORS): boolean {
  const { JOURNAL_STREAM: journal } = process.env;
  if (journal === undefined) return false; // children of a service inherit the variable, even if their streams are redirected
  const { dev, ino } = fstatSync(DESCRIPTORS[stream], { bigint: true });
  return journal === `${dev}:${ino}`;
}

/** Prefixes each line with the priority that the journal reads there (sd-daemon(3)), unless it has one. */
export function prioritized(text: string, level: keyof typeof PRIORITIES): string {
  return text.replaceAll(/^(?!<\d>)/gm, `<${PRIORITIES[level]}>`);
}
