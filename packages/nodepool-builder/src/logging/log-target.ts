import { Writable } from 'node:stream';
import { ConfigurationError } from '../configuration/fault.ts';
import { LogFile } from './file/log-file.ts';
import type { LogFileTarget, LogTarget } from './log-settings.ts';

/** An open target. */
export interface OpenTarget {
  readonly stream: Writable;
  close(): void;
}

/** @throws ConfigurationError for a file that cannot be written */
export function openTarget(target: LogTarget): OpenTarget {
  if (target.type !== 'file') return { stream: process[target.type], close: () => {} };
  const file = openFile(target);
  let failing = false;
  const stream = new Writable({
    decodeStrings: false,
    write: (text: string, _encoding, written) => {
      try {
        file.write(text);
        failing = false;
      } catch (error) {
        // A full disk must not end the daemon. Only the first failure in a row is printed.
        if (!failing)
          console.error(
            `cannot write to the log ${target.filename}; records are lost: ${(error as Error).message}`,
          );
        failing = true;
      }
      written();
    },
  });
  return { stream, close: () => file.close() };
}

function openFile(target: LogFileTarget): LogFile {
  try {
    return new LogFile(target);
  } catch (error) {
    const reason = `cannot open the log file: ${(error as Error).message}`;
    const remedy = 'create its directory, or name another file in the file of -l';
    throw new ConfigurationError(
      target.filename,
      [{ line: 1, column: 1, severity: 'error', reason, remedy }],
      { cause: error },
    );
  }
}
