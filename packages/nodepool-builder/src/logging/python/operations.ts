import { homedir } from 'node:os';
import { posix } from 'node:path';
import { strftime } from './percent-format.ts';

/** A handler's arguments cannot be evaluated, or have the wrong type. */
export class HandlerArgumentError extends Error {
  override readonly name = 'HandlerArgumentError';
}

/** An object with members: a module, a class, or the environment. */
class Namespace {
  readonly name: string;
  readonly members: Readonly<Record<string, unknown>>;

  constructor(name: string, members: Readonly<Record<string, unknown>>) {
    this.name = name;
    this.members = members;
  }
}

type Named = Readonly<Record<string, unknown>>;
type PythonFunction = (positional: readonly unknown[], named: Named) => unknown;

/** Text as Python's `str()` returns it. */
function pythonText(value: unknown): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'string' || typeof value === 'number') return String(value);
  throw new HandlerArgumentError('a list or dictionary cannot become text');
}

/** Maximum length of a text that an operation makes. */
const MAX_TEXT = 65_536;

function bounded(text: string): string {
  if (text.length > MAX_TEXT) throw new HandlerArgumentError(`a text is longer than ${MAX_TEXT} characters`);
  return text;
}

function texts(values: readonly unknown[]): readonly string[] {
  return values.map((value) => {
    if (typeof value === 'string') return value;
    throw new HandlerArgumentError(`${kindOf(value)} is used as text`);
  });
}

function numbers(operator: string, values: readonly unknown[]): readonly number[] {
  return values.map((value) => {
    if (typeof value === 'number') return value;
    throw new HandlerArgumentError(`"${operator}" is used with ${kindOf(value)}`);
  });
}

function kindOf(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (value === null || typeof value === 'boolean') return pythonText(value);
  return typeof value === 'string' ? 'text' : typeof value === 'number' ? 'a number' : 'another value';
}

function isTrue(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : Boolean(value);
}

type Operator = (left: unknown, right: unknown) => unknown;

function arithmetic(operator: string, calculate: (left: number, right: number) => number): Operator {
  return (...operands) => {
    const [left = 0, right = 0] = numbers(operator, operands);
    if (right === 0 && ['/', '//', '%'].includes(operator))
      throw new HandlerArgumentError('it divides by zero');
    return calculate(left, right);
  };
}

/** Makes an operator on integers of any length, as in Python. */
function bitwise(operator: string, calculate: (left: bigint, right: bigint) => bigint): Operator {
  return arithmetic(operator, (left, right) => {
    const isShift = operator === '<<' || operator === '>>';
    if (!Number.isInteger(left) || !Number.isInteger(right) || (isShift && (right < 0 || right > 64)))
      throw new HandlerArgumentError(`"${operator}" is used with ${left} and ${right}`);
    return Number(calculate(BigInt(left), BigInt(right)));
  });
}

const sum = arithmetic('+', (left, right) => left + right);
const product = arithmetic('*', (left, right) => left * right);
const remainder = arithmetic('%', (left, right) => left - Math.floor(left / right) * right);

/** The operator `**`. */
export const power: Operator = arithmetic('**', (left, right) => left ** right);

/** Binary operators, from the lowest precedence to the highest. */
export const OPERATORS: readonly Readonly<Record<string, Operator>>[] = [
  { or: (left, right) => (isTrue(left) ? left : right) },
  { and: (left, right) => (isTrue(left) ? right : left) },
  { '|': bitwise('|', (left, right) => left | right) },
  { '^': bitwise('^', (left, right) => left ^ right) },
  { '&': bitwise('&', (left, right) => left & right) },
  {
    '<<': bitwise('<<', (left, right) => left << right),
    '>>': bitwise('>>', (left, right) => left >> right),
  },
  {
    '+': (left, right) => {
      if (Array.isArray(left) && Array.isArray(right)) return [...left, ...right];
      return typeof left === 'string' ? bounded(left + texts([right])[0]) : sum(left, right);
    },
    '-': arithmetic('-', (left, right) => left - right),
  },
  {
    '*': (left, right) => {
      if (typeof left === 'string') return repeated(left, right);
      return typeof right === 'string' ? repeated(right, left) : product(left, right);
    },
    '//': arithmetic('//', (left, right) => Math.floor(left / right)),
    '/': arithmetic('/', (left, right) => left / right),
    '%': (left, right) => (typeof left === 'string' ? formatted(left, right) : remainder(left, right)),
  },
];

/** Unary operators. */
export const SIGNS: Readonly<Record<string, (value: unknown) => unknown>> = {
  '-': (value) => product(-1, value),
  '+': (value) => product(1, value),
  not: (value) => !isTrue(value),
};

function repeated(text: string, count: unknown): string {
  const [times = 0] = numbers('*', [count]);
  return bounded(text.repeat(Math.max(0, Math.min(times, Math.ceil((MAX_TEXT + 1) / (text.length || 1))))));
}

/** `%` of a text: `%s`, `%d` and `%i` with an item of a tuple, or with the key of a dictionary. */
function formatted(text: string, values: unknown): string {
  const items = Array.isArray(values) ? [...values] : [values];
  return bounded(
    text.replaceAll(
      /%(?:%|(?:\((\w+)\))?(0?)(\d{0,3})([a-z])|)/gi,
      (directive, key, zero, width, conversion) => {
        if (directive === '%%') return '%';
        if (!['s', 'd', 'i'].includes(conversion))
          throw new HandlerArgumentError(`"${directive}" is not understood`);
        const value: unknown = key === undefined ? items.shift() : memberOf(values, key);
        if (value === undefined) throw new HandlerArgumentError(`"${directive}" lacks a value`);
        const shown =
          conversion === 's' ? pythonText(value) : String(Math.trunc(numbers(directive, [value])[0] ?? 0));
        return shown.padStart(Number(width), zero === '' ? ' ' : '0');
      },
    ),
  );
}

/** `str.format` with `{}`, `{0}` and `{name}`. */
function format(text: string, positional: readonly unknown[], named: Named): string {
  let next = 0;
  return bounded(
    text.replaceAll(/\{\{|\}\}|\{(\w*)\}|[{}]/g, (braces, field: string | undefined) => {
      if (field === undefined && braces.length === 2) return braces.charAt(0);
      const value = /^\d*$/.test(field ?? 'x')
        ? positional[field === '' ? next++ : Number(field)]
        : named[field ?? ''];
      if (value === undefined) throw new HandlerArgumentError(`"${braces}" lacks a value`);
      return pythonText(value);
    }),
  );
}

const STRING_METHODS: Readonly<Record<string, (text: string) => PythonFunction>> = {
  format: (text) => (positional, named) => format(text, positional, named),
  join:
    (text) =>
    ([items]) =>
      bounded(texts(Array.isArray(items) ? items : [items]).join(text)),
  lower: (text) => () => text.toLowerCase(),
  upper: (text) => () => text.toUpperCase(),
  strip: (text) => () => text.trim(),
};

/** Value of `target.key` or `target[key]`. */
export function memberOf(target: unknown, key: unknown): unknown {
  if (target instanceof Namespace) {
    if (Object.hasOwn(target.members, String(key))) return target.members[String(key)];
    throw new HandlerArgumentError(`${target.name} has no ${String(key)} here`);
  }
  if (typeof target === 'string') {
    const method = Object.hasOwn(STRING_METHODS, String(key)) ? STRING_METHODS[String(key)] : undefined;
    if (method !== undefined) return method(target);
  }
  if (Array.isArray(target) && Number.isInteger(key)) {
    const found: unknown = target.at(Number(key));
    if (found !== undefined) return found;
  }
  if (typeof target === 'object' && target !== null && Object.hasOwn(target, String(key))) {
    return (target as Named)[String(key)];
  }
  throw new HandlerArgumentError(`${kindOf(target)} has no ${String(key)} here`);
}

/** Calls one of the functions below. */
export function call(target: unknown, positional: readonly unknown[], named: Named): unknown {
  if (typeof target === 'function') return (target as PythonFunction)(positional, named);
  throw new HandlerArgumentError(`${kindOf(target)} is called like a function`);
}

/** Makes a function whose arguments are texts. */
function ofTexts(convert: (...values: string[]) => unknown): PythonFunction {
  return (positional) => convert(...texts(positional));
}

function variable([name, other = null]: readonly unknown[]): unknown {
  return process.env[String(name)] ?? other;
}

/** `os.path.join`: an absolute path replaces the paths before it. */
function joinPaths(...paths: string[]): string {
  return paths.reduce((path, next) => {
    if (next.startsWith('/') || path === '') return next;
    return path.endsWith('/') ? path + next : `${path}/${next}`;
  }, '');
}

const FACILITIES =
  'KERN USER MAIL DAEMON AUTH SYSLOG LPR NEWS UUCP CRON AUTHPRIV FTP NTP SECURITY CONSOLE SOLCRON ' +
  'LOCAL0 LOCAL1 LOCAL2 LOCAL3 LOCAL4 LOCAL5 LOCAL6 LOCAL7';

/**
 * The names that an expression may use. They are from the namespace of Python's `logging`, in which the field's files
 * are evaluated.
 */
export const NAMES: Readonly<Record<string, unknown>> = {
  True: true,
  False: false,
  None: null,
  CRITICAL: 50,
  FATAL: 50,
  ERROR: 40,
  WARNING: 30,
  WARN: 30,
  INFO: 20,
  DEBUG: 10,
  NOTSET: 0,
  sys: new Namespace('sys', { stdout: 'sys.stdout', stderr: 'sys.stderr', platform: 'linux' }),
  os: new Namespace('os', {
    environ: new Namespace('os.environ', { ...process.env, get: variable }),
    getenv: variable,
    getcwd: () => process.cwd(),
    getpid: () => process.pid,
    sep: '/',
    path: new Namespace('os.path', {
      join: ofTexts(joinPaths),
      abspath: ofTexts((path) => posix.resolve(path)),
      basename: ofTexts((path) => path.slice(path.lastIndexOf('/') + 1)),
      dirname: ofTexts((path) => posix.dirname(path)),
      expanduser: ofTexts((path) => path.replace(/^~(?=\/|$)/, () => process.env.HOME ?? homedir())),
      normpath: ofTexts((path) => posix.normalize(path)),
    }),
  }),
  time: new Namespace('time', { strftime: ofTexts((layout) => strftime(layout, new Date())) }),
  handlers: new Namespace('handlers', {
    SysLogHandler: new Namespace(
      'handlers.SysLogHandler',
      Object.fromEntries(FACILITIES.split(' ').map((name, index) => [`LOG_${name}`, index])),
    ),
    SYSLOG_UDP_PORT: 514,
    DEFAULT_TCP_LOGGING_PORT: 9020,
    DEFAULT_UDP_LOGGING_PORT: 9021,
  }),
  dict: (_positional: readonly unknown[], named: Named) => named,
  int: ([value]: readonly unknown[]) => {
    const number = Math.trunc(Number(value));
    if (Number.isNaN(number)) throw new HandlerArgumentError(`int() is used with ${kindOf(value)}`);
    return number;
  },
  str: ([value]: readonly unknown[]) => pythonText(value),
};
