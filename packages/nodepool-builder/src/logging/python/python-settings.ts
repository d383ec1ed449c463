import { ConfigurationError, type Fault } from '../../configuration/fault.ts';
import type { LoggerSettings, LogOutput, LogThreshold, ReadLogSettings } from '../log-settings.ts';
import { type RecordFormat, textFormat } from '../record-format.ts';
import { bindArguments, HANDLERS, HandlerArgumentError } from './handlers.ts';
import { IniError, type IniFile, type IniSection, interpolated, parseIni } from './ini-file.ts';
import { LiteralError, parseLiteral } from './literal.ts';
import { formatError, percentFormat } from './percent-format.ts';

/** Thresholds by Python level. CRITICAL means none, because our highest level is ERROR. */
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
 * Parses a logging configuration for Python without evaluating anything.
 *
 * @throws ConfigurationError for a file that Python would reject, too
 */
export function parsePythonSettings(file: string, text: string): ReadLogSettings {
  try {
    const reader = new PythonSettingsReader(parseIni(text));
    return { settings: { loggers: reader.loggers() }, warnings: reader.warnings };
  } catch (error) {
    if (!(error instanceof IniError)) throw error;
    throw new ConfigurationError(
      file,
      [
        {
          line: error.line,
          column: 1,
          severity: 'error',
          reason: error.message,
          remedy: 'correct it, or write YAML',
        },
      ],
      { cause: error },
    );
  }
}

class PythonSettingsReader {
  readonly warnings: Fault[] = [];
  readonly #file: IniFile;

  constructor(file: IniFile) {
    this.#file = file;
  }

  loggers(): ReadonlyMap<string, LoggerSettings> {
    const formats = new Map(
      this.#named('formatters', 'formatter').map(([key, section]) => [key, this.#format(section)]),
    );
    const outputs = new Map(
      this.#named('handlers', 'handler').map(([key, section]) => [key, this.#output(section, formats)]),
    );
    const loggers = new Map(
      this.#named('loggers', 'logger').map(([key, section]) => {
        const name = key === 'root' ? '' : this.#required(section, 'qualname');
        return [name, this.#logger(section, outputs)];
      }),
    );
    if (!loggers.has(''))
      throw new IniError('the keys of [loggers] lack "root"', this.#section('loggers').line);
    return loggers;
  }

  #logger(section: IniSection, outputs: ReadonlyMap<string, LogOutput | undefined>): LoggerSettings {
    const level = this.#level(section);
    const names = commaList(this.#text(section, 'handlers'));
    for (const name of names) {
      if (!outputs.has(name)) {
        throw new IniError(
          `the handler "${name}" is not among the keys of [handlers]`,
          this.#lineOf(section, 'handlers'),
        );
      }
    }
    return {
      ...(level !== undefined && { level }),
      outputs: names.flatMap((name) => outputs.get(name) ?? []),
      propagate: (this.#text(section, 'propagate') ?? '1') !== '0',
    };
  }

  /** Returns undefined for a handler without output, or an unsupported handler. */
  #output(section: IniSection, formats: ReadonlyMap<string, RecordFormat>): LogOutput | undefined {
    const name = this.#required(section, 'class');
    const handler = HANDLERS[name.replace(/^logging\./, '')];
    if (handler === undefined) {
      const known = Object.keys(HANDLERS).join(', ');
      this.#warn(section, 'class', `the handler class ${name} is not supported`, `use one of ${known}`);
      return undefined;
    }
    const formatter = this.#text(section, 'formatter') ?? '';
    if (formatter !== '' && !formats.has(formatter)) {
      const reason = `the formatter "${formatter}" is not among the keys of [formatters]`;
      throw new IniError(reason, this.#lineOf(section, 'formatter'));
    }
    const level = this.#level(section);
    try {
      const args = bindArguments(
        handler,
        parseLiteral(this.#text(section, 'args') ?? '()'),
        parseLiteral(this.#text(section, 'kwargs') ?? '{}'),
      );
      const target = handler.target(args);
      if (target === undefined) return undefined;
      const format = formats.get(formatter) ?? percentFormat('%(message)s', '');
      return { target, format, ...(level !== undefined && { level }) };
    } catch (error) {
      if (!(error instanceof LiteralError || error instanceof HandlerArgumentError)) throw error;
      throw new IniError(`args of ${name}: ${error.message}`, this.#lineOf(section, 'args'));
    }
  }

  #format(section: IniSection): RecordFormat {
    // Python does not interpolate these values.
    const raw = (key: string): string => section.values.get(key)?.text ?? '';
    const format = raw('format') || '%(message)s';
    const isPercent = ['', '%'].includes(raw('style')) && ['', 'logging.Formatter'].includes(raw('class'));
    const reason = isPercent ? formatError(format, raw('datefmt')) : 'only formats with "%" are supported';
    if (reason === undefined) return percentFormat(format, raw('datefmt'));
    this.#warn(
      section,
      'format',
      `the format cannot be used: ${reason}`,
      'the default format is used instead',
    );
    return textFormat;
  }

  #level(section: IniSection): LogThreshold | undefined {
    const name = this.#text(section, 'level') ?? 'NOTSET';
    if (Object.hasOwn(LEVELS, name)) return LEVELS[name];
    const known = Object.keys(LEVELS).join(', ');
    throw new IniError(`the level "${name}" is not one of ${known}`, this.#lineOf(section, 'level'));
  }

  /** Returns the sections that `keys` of a section names. */
  #named(list: string, prefix: string): readonly (readonly [key: string, section: IniSection])[] {
    return commaList(this.#required(this.#section(list), 'keys')).map((key) => [
      key,
      this.#section(`${prefix}_${key}`),
    ]);
  }

  #section(name: string): IniSection {
    const section = this.#file.get(name);
    if (section === undefined) throw new IniError(`the section [${name}] is missing`, 1);
    return section;
  }

  #text(section: IniSection, key: string): string | undefined {
    const value = section.values.get(key);
    return value && interpolated(section, value);
  }

  #required(section: IniSection, key: string): string {
    const text = this.#text(section, key);
    if (text === undefined) throw new IniError(`the section lacks "${key}"`, section.line);
    return text;
  }

  #lineOf(section: IniSection, key: string): number {
    return section.values.get(key)?.line ?? section.line;
  }

  #warn(section: IniSection, key: string, reason: string, remedy: string): void {
    this.warnings.push({ line: this.#lineOf(section, key), column: 1, severity: 'warning', reason, remedy });
  }
}

function commaList(text = ''): readonly string[] {
  return text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}
