import type { LocatedDiagnostic } from '../../yaml/diagnostic.ts';
import type { LoggerSettings, LogOutput, LogThreshold, ReadLogSettings } from '../log-settings.ts';
import { type RecordFormat, textFormat } from '../record-format.ts';
import { evaluate, HandlerArgumentError } from './expressions.ts';
import { bindArguments, HANDLERS } from './handlers.ts';
import { type IniSection, iniError, parseIni } from './ini-file.ts';
import { formatError, percentFormat } from './percent-format.ts';

/** Thresholds by Python level. CRITICAL discards all records, because our highest level is ERROR. */
const LEVELS: Readonly<Record<string, LogThreshold | undefined>> = {
  CRITICAL: 'silent',
  FATAL: 'silent',
  ERROR: 'error',
  WARNING: 'warn',
  WARN: 'warn',
  INFO: 'info',
  DEBUG: 'debug',
  NOTSET: undefined,
};

/**
 * Parses a logging configuration for Python. As in `fileConfig`, Python evaluates `args` and `kwargs` of its handlers.
 *
 * @throws ConfigurationError for a file that Python would also reject; ImageError if `python3` is missing or fails
 */
export async function parsePythonSettings(file: string, text: string): Promise<ReadLogSettings> {
  const sections = parseIni(file, text);
  const handlers = [...sections].filter(([name]) => name.startsWith('handler_'));
  const expressions = handlers.flatMap(([, handler]) => Object.values(argumentsOf(handler)));
  const valueOfExpression = await evaluate(expressions);
  const warnings: LocatedDiagnostic[] = [];
  const section = (name: string): IniSection => {
    const found = sections.get(name);
    if (found !== undefined) return found;
    throw iniError(file, 1, `the section [${name}] is missing`);
  };
  /** Reads the sections that a section's `keys` lists. */
  const named = <T>(
    list: string,
    prefix: string,
    read: (named: IniSection, key: string) => T,
  ): Map<string, T> => {
    const keys = commaList(section(list).required('keys'));
    return new Map(keys.map((key) => [key, read(section(`${prefix}_${key}`), key)]));
  };
  const formats = named('formatters', 'formatter', (formatter) => formatOf(formatter, warnings));
  const outputs = named('handlers', 'handler', (handler) =>
    outputOf(handler, formats, valueOfExpression, warnings),
  );
  const loggers = named('loggers', 'logger', (logger, key): [string, LoggerSettings] => [
    key === 'root' ? '' : logger.required('qualname'),
    loggerOf(logger, outputs),
  ]);
  if (!loggers.has('root')) throw section('loggers').error('', 'the keys of [loggers] lack "root"');
  return { settings: new Map(loggers.values()), warnings };
}

function loggerOf(section: IniSection, outputs: ReadonlyMap<string, LogOutput | undefined>): LoggerSettings {
  const names = commaList(section.text('handlers'));
  const unknown = names.find((name) => !outputs.has(name));
  if (unknown !== undefined) {
    throw section.error('handlers', `the handler "${unknown}" is not among the keys of [handlers]`);
  }
  return {
    ...levelOf(section),
    outputs: names.flatMap((name) => outputs.get(name) ?? []),
    propagate: (section.text('propagate') ?? '1') !== '0',
  };
}

/** Returns the expressions of a handler's arguments. */
function argumentsOf(section: IniSection): { readonly args: string; readonly kwargs: string } {
  return { args: section.text('args') ?? '()', kwargs: section.text('kwargs') ?? '{}' };
}

/** Returns undefined for a handler without output. An unsupported handler writes to standard error. */
function outputOf(
  section: IniSection,
  formats: ReadonlyMap<string, RecordFormat>,
  valueOfExpression: (expression: string) => unknown,
  warnings: LocatedDiagnostic[],
): LogOutput | undefined {
  const name = section.required('class');
  const className = name.replace(/^logging\./, '');
  const handler = Object.hasOwn(HANDLERS, className) ? HANDLERS[className] : undefined;
  if (handler === undefined) {
    const remedy = `its records go to standard error; use one of ${Object.keys(HANDLERS).join(', ')}`;
    const reason = `the handler class ${name} is not supported`;
    warnings.push(section.warning('class', reason, remedy));
  }
  const formatter = section.text('formatter') ?? '';
  const format = formatter === '' ? percentFormat('%(message)s', '') : formats.get(formatter);
  if (format === undefined) {
    const reason = `the formatter "${formatter}" is not among the keys of [formatters]`;
    throw section.error('formatter', reason);
  }
  const level = levelOf(section);
  if (handler === undefined) return { target: { type: 'stderr' }, format, ...level };
  try {
    const { args, kwargs } = argumentsOf(section);
    const target = handler.target(bindArguments(handler, valueOfExpression(args), valueOfExpression(kwargs)));
    return target && { target, format, ...level };
  } catch (error) {
    if (!(error instanceof HandlerArgumentError)) throw error;
    throw section.error('args', `args of ${name}: ${error.message}`, { cause: error });
  }
}

function formatOf(section: IniSection, warnings: LocatedDiagnostic[]): RecordFormat {
  // Python does not interpolate these values.
  const raw = (key: string): string => section.raw(key) ?? '';
  const format = raw('format') || '%(message)s';
  const isPercent = ['', '%'].includes(raw('style')) && ['', 'logging.Formatter'].includes(raw('class'));
  const reason = isPercent ? formatError(format, raw('datefmt')) : 'only formats with "%" are supported';
  if (reason === undefined) return percentFormat(format, raw('datefmt'));
  const remedy = 'the default format is used instead';
  warnings.push(section.warning('format', `the format cannot be used: ${reason}`, remedy));
  return textFormat;
}

function levelOf(section: IniSection): { readonly level?: LogThreshold } {
  const name = section.text('level') ?? 'NOTSET';
  if (!Object.hasOwn(LEVELS, name)) {
    const known = Object.keys(LEVELS).join(', ');
    throw section.error('level', `the level "${name}" is not one of ${known}`);
  }
  const level = LEVELS[name];
  return level === undefined ? {} : { level };
}

function commaList(text = ''): readonly string[] {
  return text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}
