import { readText } from '../configuration/read-document.ts';
import type { LogSettings, LogTarget, ReadLogSettings } from './log-settings.ts';
import { parsePythonSettings } from './python/python-settings.ts';
import { type LogLevel, textFormat } from './record-format.ts';
import { parseYamlSettings } from './yaml-settings.ts';

/** Rotation of the log of a background process. */
const ROTATION = { by: 'size', maxBytes: 10 * 1024 * 1024, backups: 6 } as const;

/** Default settings: all records to standard error. */
export function defaultLogSettings(level: LogLevel): LogSettings {
  return everythingTo({ type: 'stderr' }, level);
}

/** Default settings of a background process: all records to a rotated file. */
export function backgroundLogSettings(level: LogLevel, filename: string): LogSettings {
  return everythingTo({ type: 'file', filename, rotation: ROTATION }, level);
}

function everythingTo(target: LogTarget, level: LogLevel): LogSettings {
  const outputs = [{ target, format: textFormat }];
  return { loggers: new Map([['', { level, outputs, propagate: true }]]) };
}

/**
 * Reads the file of `-l`: a logging configuration for Python, or our own in YAML.
 *
 * @throws ConfigurationError with file, line, reason and remedy
 */
export async function readLogSettings(file: string): Promise<ReadLogSettings> {
  const text = await readText(file, '-l');
  const isIni = /^(?:[^\S\n]*(?:[#;][^\n]*)?\n)*[^\S\n]*\[/.test(text);
  return isIni ? parsePythonSettings(file, text) : parseYamlSettings(file, text);
}
