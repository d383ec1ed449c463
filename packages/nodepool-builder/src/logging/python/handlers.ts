import { resolve } from 'node:path';
import type { LogTarget, TimeUnit } from '../log-settings.ts';
import type { PythonName, PythonValue } from './literal.ts';

/** Arguments of a handler by their names. */
type Arguments = ReadonlyMap<string, PythonValue>;

/** A handler of Python's logging, and what does the same here. */
interface Handler {
  /** Names of its arguments, in their order. */
  readonly parameters: readonly string[];
  /** Where its records go; undefined for nowhere. */
  target(args: Arguments): LogTarget | undefined;
}

/** Arguments that a handler cannot do with. */
export class HandlerArgumentError extends Error {
  override readonly name = 'HandlerArgumentError';
}

const FILE = ['filename', 'mode'];

/** The handlers that can be followed, by class without `logging.`. */
export const HANDLERS: Readonly<Record<string, Handler>> = {
  StreamHandler: {
    parameters: ['stream'],
    target: (args) => ({ type: streamOf(args) }),
  },
  NullHandler: { parameters: [], target: () => undefined },
  FileHandler: {
    parameters: [...FILE, 'encoding', 'delay'],
    target: (args) => ({ ...fileOf(args), truncate: textOf(args, 'mode', 'a').startsWith('w') }),
  },
  'handlers.WatchedFileHandler': {
    parameters: [...FILE, 'encoding', 'delay'],
    target: (args) => ({ ...fileOf(args), watched: true }),
  },
  'handlers.RotatingFileHandler': {
    parameters: [...FILE, 'maxBytes', 'backupCount', 'encoding', 'delay'],
    target: (args) => {
      const [maxBytes, backups] = [countOf(args, 'maxBytes', 0), countOf(args, 'backupCount', 0)];
      const rotates = maxBytes > 0 && backups > 0; // if either is 0, Python's grows for ever
      return { ...fileOf(args), ...(rotates && { rotation: { by: 'size', maxBytes, backups } }) };
    },
  },
  'handlers.TimedRotatingFileHandler': {
    parameters: ['filename', 'when', 'interval', 'backupCount', 'encoding', 'delay', 'utc', 'atTime'],
    target: (args) => ({
      ...fileOf(args),
      rotation: {
        by: 'time',
        unit: unitOf(args),
        interval: Math.max(1, countOf(args, 'interval', 1)),
        backups: countOf(args, 'backupCount', 0),
        utc: args.get('utc') === true,
      },
    }),
  },
};

/**
 * The arguments of a handler by their names.
 *
 * @throws HandlerArgumentError
 */
export function bindArguments(
  { parameters }: Handler,
  positional: PythonValue,
  keywords: PythonValue,
): Arguments {
  const list = Array.isArray(positional) ? (positional as readonly PythonValue[]) : undefined;
  if (list === undefined) throw new HandlerArgumentError('args has to be a tuple, such as (sys.stderr,)');
  if (!(keywords instanceof Map)) throw new HandlerArgumentError('kwargs has to be a dictionary');
  if (list.length > parameters.length) {
    throw new HandlerArgumentError(`it takes at most ${parameters.length} arguments`);
  }
  const named = [...(keywords as ReadonlyMap<PythonValue, PythonValue>)].map(
    ([key, value]) => [typeof key === 'string' ? key : '', value] as const,
  );
  return new Map([...list.map((value, index) => [parameters[index] ?? '', value] as const), ...named]);
}

function fileOf(args: Arguments): { type: 'file'; filename: string } {
  const filename = args.get('filename');
  if (typeof filename === 'string' && filename !== '') return { type: 'file', filename: resolve(filename) };
  throw new HandlerArgumentError('its first argument has to be the name of a file');
}

function streamOf(args: Arguments): 'stdout' | 'stderr' {
  const stream = args.get('stream') ?? null;
  const name = isName(stream) ? stream.name : stream;
  if (name === null || name === 'sys.stderr') return 'stderr';
  if (name === 'sys.stdout') return 'stdout';
  throw new HandlerArgumentError('its stream has to be sys.stdout or sys.stderr');
}

function unitOf(args: Arguments): TimeUnit {
  const unit = textOf(args, 'when', 'H').toUpperCase();
  if (/^(?:S|M|H|D|MIDNIGHT|W[0-6])$/.test(unit)) return unit as TimeUnit;
  throw new HandlerArgumentError('"when" has to be one of S, M, H, D, midnight, W0 to W6');
}

function textOf(args: Arguments, name: string, standard: string): string {
  const value = args.get(name) ?? standard;
  if (typeof value === 'string') return value;
  throw new HandlerArgumentError(`"${name}" has to be text`);
}

function countOf(args: Arguments, name: string, standard: number): number {
  const value = args.get(name) ?? standard;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  throw new HandlerArgumentError(`"${name}" has to be a whole number`);
}

function isName(value: PythonValue): value is PythonName {
  return typeof value === 'object' && value !== null && 'name' in value;
}
