import { GearmanError, ProtocolError } from '../errors.ts';

/** One line of the admin command `status`. */
export interface FunctionStatus {
  readonly name: string;
  /** Jobs queued and running. */
  readonly total: number;
  readonly running: number;
  /** Connections that offer the function. */
  readonly availableWorkers: number;
}

/** One line of the admin command `prioritystatus`: the number of waiting jobs by priority. */
export interface FunctionPriorityStatus {
  readonly name: string;
  readonly high: number;
  readonly normal: number;
  readonly low: number;
  /** Connections that offer the function. */
  readonly availableWorkers: number;
}

/** One line of the admin command `workers`: a connection, whether it offers functions or not. */
export interface WorkerInfo {
  /** File descriptor or number of the connection in the server. */
  readonly fd: number;
  readonly ip: string;
  /** `-` for none. */
  readonly clientId: string;
  readonly functions: readonly string[];
}

/** One line of the admin command `show jobs`. */
export interface QueuedJob {
  readonly handle: string;
  /** Number of workers that lost the job. */
  readonly retries: number;
  /** True if all clients of the job have disconnected. */
  readonly ignored: boolean;
  readonly background: boolean;
}

/** Maximum number of characters of a line in an error message. */
const MAX_SHOWN = 80;

/**
 * Formats a command of the admin text protocol as one line.
 *
 * @throws GearmanError `invalid-argument` for an argument that is empty or contains white space, which would end it
 */
export function formatCommand(command: string, args: readonly (string | number)[]): string {
  for (const arg of args) {
    if (String(arg) === '' || /\s/.test(String(arg))) {
      const shown = JSON.stringify(arg);
      throw new GearmanError(
        'invalid-argument',
        `the admin protocol cannot transmit the argument ${shown}; give one without white space`,
      );
    }
  }
  const words = [command, ...args].join(' ');
  // Only in this command gearmand drops the last character of a name before a bare newline.
  return command === 'create function' ? `${words}\r\n` : `${words}\n`;
}

/** Splits a line into a name, which may contain tabs, and the numbers at the end. */
function fromEnd(line: string, numbers: number): { readonly name: string; readonly values: number[] } {
  const fields = line.split('\t');
  if (fields.length <= numbers) throw malformed(line);
  const values = fields.slice(-numbers).map((field) => parseNumber(field, line));
  return { name: fields.slice(0, -numbers).join('\t'), values };
}

/** @param line the reply line, quoted in the error */
function parseNumber(text: string, line: string): number {
  const number = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(number)) return number;
  throw malformed(line);
}

function malformed(line: string): ProtocolError {
  const shown = JSON.stringify(line.slice(0, MAX_SHOWN));
  return new ProtocolError(
    'reply-malformed',
    `the job server replied ${shown}, which is not a valid reply to this command; check that it is a Gearman server`,
  );
}

/** @throws ProtocolError `reply-malformed` */
export function parseStatus(line: string): FunctionStatus {
  const { name, values } = fromEnd(line, 3);
  const [total = 0, running = 0, availableWorkers = 0] = values;
  return { name, total, running, availableWorkers };
}

/** @throws ProtocolError `reply-malformed` */
export function parsePriorityStatus(line: string): FunctionPriorityStatus {
  const { name, values } = fromEnd(line, 4);
  const [high = 0, normal = 0, low = 0, availableWorkers = 0] = values;
  return { name, high, normal, low, availableWorkers };
}

/** @throws ProtocolError `reply-malformed` */
export function parseWorker(line: string): WorkerInfo {
  const match = /^(\d+) (\S+) (.*?) ?:(?: (.*))?$/s.exec(line);
  if (!match) throw malformed(line);
  const [, fd = '', ip = '', clientId = '', functions = ''] = match;
  return { fd: parseNumber(fd, line), ip, clientId, functions: functions === '' ? [] : functions.split(' ') };
}

/** @throws ProtocolError `reply-malformed` */
export function parseJob(line: string): QueuedJob {
  const { name, values } = fromEnd(line, 3);
  const [retries = 0, ignored = 0, background = 0] = values;
  return { handle: name, retries, ignored: ignored !== 0, background: background !== 0 };
}

/** @throws ProtocolError `reply-malformed` */
export function parsePid(line: string): number {
  return parseNumber(parseValue(line), line);
}

/** The value after `OK `, which Perl's server omits. */
export function parseValue(line: string): string {
  return line.replace(/^OK /, '');
}

/** @throws ProtocolError `reply-malformed` for any reply but `OK` */
export function checkDone(line: string): void {
  if (!line.startsWith('OK')) throw malformed(line);
}
