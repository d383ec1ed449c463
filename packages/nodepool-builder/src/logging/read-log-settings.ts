import { readText } from '../configuration/read-document.ts';
import type { LogLevel, LogSettings, LogTarget, ReadLogSettings } from './log-settings.ts';
import { parsePythonSettings } from './python/python-settings.ts';
import { textFormat } from './record-format.ts';
import { parseYamlSettings } from './yaml-settings.ts';

/** Rotation of the log in the background: size limit and number of old logs. */
const ROTATION = { by: 'size', maxBytes: 10 * 1024 * 1024, backups: 6 } as const;

/** To standard error, without a file of settings. */
export function defaultLogSettings(level: LogLevel): LogSettings {
  return everythingTo({ type: 'stderr' }, level);
}

/** Settings for a rotated file, without a file of settings. */
export function backgroundLogSettings(level: LogLevel, filename: string): LogSettings {
  return everythingTo({ type: 'file', filename, rotation: ROTATION }, level);
}

function everythingTo(target: LogTarget, level: LogLevel): LogSettings {
  const outputs = [{ target, format: textFormat }];
  return { loggers: new Map([['', { level, outputs, propagate: true }]]) };
}

/**
 * Reads the file of `-l`: a logging configuration of Python, or one of ours in YAML.
 *
 * @throws ConfigurationError that names the file, the line, the fault and the remedy
 */
export async function readLogSettings(file: string): Promise<ReadLogSettings> {
  const text = await readText(file, '-l');
  const isIni = /^(?:[^\S\n]*(?:[#;][^\n]*)?\n)*[^\S\n]*\[/.test(text);
  return isIni ? parsePythonSettings(file, text) : parseYamlSettings(file, text);
}
