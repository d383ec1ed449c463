import { resolve } from 'node:path';
import type { LogTarget, TimeUnit } from '../log-settings.ts';
import { HandlerArgumentError } from './expressions.ts';

/** Arguments of a handler by name. */
type Arguments = Readonly<Record<string, unknown>>;

/** A handler of Python's logging, with the equivalent target. */
interface Handler {
  /** Names of the handler's arguments, in order. */
  readonly parameters: readonly string[];
  /** Returns the target; undefined if the handler discards its records. */
  target(args: Arguments): LogTarget | undefined;
}

const FILE = ['filename', 'mode'];

/** Supported handlers by class, without `logging.`. */
export const HANDLERS: Readonly<Record<string, Handler>> = {
  StreamHandler: {
    parameters: ['stream'],
    target: (args) => ({ type: streamOf(args) }),
  },
  NullHandler: { parameters: [], target: () => undefined },
  FileHandler: {
    parameters: [...FILE, 'encoding', 'delay', 'errors'],
    target: (args) => ({ ...fileOf(args), truncate: textOf(args, 'mode', 'a').startsWith('w') }),
  },
  'handlers.WatchedFileHandler': {
    parameters: [...FILE, 'encoding', 'delay', 'errors'],
    target: (args) => ({ ...fileOf(args), watched: true }),
  },
  'handlers.RotatingFileHandler': {
    parameters: [...FILE, 'maxBytes', 'backupCount', 'encoding', 'delay', 'errors'],
    target: (args) => {
      const [maxBytes, backups] = [countOf(args, 'maxBytes', 0), countOf(args, 'backupCount', 0)];
      const rotates = maxBytes > 0 && backups > 0; // if either is 0, Python never rotates
      return { ...fileOf(args), ...(rotates && { rotation: { by: 'size', maxBytes, backups } }) };
    },
  },
  'handlers.TimedRotatingFileHandler': {
    parameters: [
      'filename',
      'when',
      'interval',
      'backupCount',
      'encoding',
      'delay',
      'utc',
      'atTime',
      'errors',
    ],
    target: (args) => ({
      ...fileOf(args),
      rotation: {
        by: 'time',
        unit: unitOf(args),
        interval: Math.max(1, countOf(args, 'interval', 1)),
        backups: countOf(args, 'backupCount', 0),
        utc: args.utc === true,
      },
    }),
  },
};

/**
 * Maps the arguments of a handler to their names.
 *
 * @param positional value of `args`: an array
 * @param named value of `kwargs`: an object
 * @throws HandlerArgumentError
 */
export function bindArguments({ parameters }: Handler, positional: unknown, named: unknown): Arguments {
  if (!Array.isArray(positional))
    throw new HandlerArgumentError('args must be a tuple, such as (sys.stderr,)');
  if (Array.isArray(named)) throw new HandlerArgumentError('kwargs must be a dictionary');
  if (positional.length > parameters.length) {
    throw new HandlerArgumentError(`it takes at most ${parameters.length} arguments`);
  }
  const unknown = Object.keys(Object(named)).find((name) => !parameters.includes(name));
  if (unknown !== undefined) throw new HandlerArgumentError(`it has no argument "${unknown}"`);
  return {
    ...Object.fromEntries(positional.map((value, index) => [parameters[index], value])),
    ...Object(named),
  };
}

function fileOf({ filename }: Arguments): { type: 'file'; filename: string } {
  if (typeof filename === 'string' && filename !== '') return { type: 'file', filename: resolve(filename) };
  throw new HandlerArgumentError('the first argument must be a file name');
}

function streamOf({ stream }: Arguments): 'stdout' | 'stderr' {
  if (stream == null || stream === 'sys.stderr') return 'stderr';
  if (stream === 'sys.stdout') return 'stdout';
  throw new HandlerArgumentError('stream must be sys.stdout or sys.stderr');
}

function unitOf(args: Arguments): TimeUnit {
  const unit = textOf(args, 'when', 'H').toUpperCase();
  if (/^(?:S|M|H|D|MIDNIGHT|W[0-6])$/.test(unit)) return unit as TimeUnit;
  throw new HandlerArgumentError('"when" must be one of S, M, H, D, midnight, W0 to W6');
}

function textOf(args: Arguments, name: string, standard: string): string {
  const value = args[name] ?? standard;
  if (typeof value === 'string') return value;
  throw new HandlerArgumentError(`"${name}" must be text`);
}

function countOf(args: Arguments, name: string, standard: number): number {
  const value = args[name] ?? standard;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  throw new HandlerArgumentError(`"${name}" must be a whole number`);
}
