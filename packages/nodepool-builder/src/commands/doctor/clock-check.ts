import type { CheckResult } from '@nodepool-builder/image-builder';
import { runCommand } from '@nodepool-builder/image-builder/internal';
import type { Check } from './checks.ts';

/** Commands that show whether NTP synchronises the clock, and a pattern for the line that shows it. */
const COMMANDS: readonly (readonly [command: string, args: readonly string[], yes: RegExp, no: RegExp])[] = [
  ['timedatectl', ['show', '--property=NTPSynchronized'], /^NTPSynchronized=yes$/, /^NTPSynchronized=no$/],
  ['chronyc', ['-n', 'tracking'], /^Leap status\s*: Normal/, /^Leap status\s*: Not synchronised/],
  ['adjtimex', ['--print'], /^\s*return value = 0\b/, /^\s*return value = 5\b/],
];

const SUBJECT = 'time synchronisation';

/** Checks that NTP sets the clock of this host, because providers compare it with their own. */
export function clockCheck(): Check {
  return {
    area: 'clock',
    subject: SUBJECT,
    run: (signal) => [checkSynchronisation(signal)],
  };
}

async function checkSynchronisation(signal: AbortSignal): Promise<CheckResult> {
  for (const [command, args, yes, no] of COMMANDS) {
    const lines: string[] = [];
    const onLine = (line: string): void => void lines.push(line);
    const result = await runCommand(command, args, { cwd: '/', signal, onLine }).catch(() => undefined);
    signal.throwIfAborted();
    if (result === undefined) continue; // not installed
    if (lines.some((line) => yes.test(line))) {
      return { subject: SUBJECT, status: 'ok', message: `NTP sets the clock, according to ${command}` };
    }
    if (lines.some((line) => no.test(line))) {
      const message = `the clock is not synchronised, according to ${command}`;
      const remedy = 'install systemd-timesyncd or chrony; tokens and certificates need the right time';
      return { subject: SUBJECT, status: 'warning', message, remedy };
    }
  }
  const message = 'unknown: timedatectl, chronyc and adjtimex are not available or do not report it';
  return { subject: SUBJECT, status: 'ok', message };
}
