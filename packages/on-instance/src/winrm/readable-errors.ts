import { parseXml } from './xml.ts';

const MARK = '#< CLIXML';

/** Escape of one UTF-16 unit. */
const ENCODED_UNIT = /_x([0-9A-Fa-f]{4})_/g;

/**
 * Returns a function that makes PowerShell's error stream readable: it converts a line to the lines that a console would
 * show. When a program calls PowerShell, it writes objects in XML there ([MS-PSRP], section 2.2.5), including the
 * progress of its commands.
 */
export function readableErrors(): (line: string) => readonly string[] {
  let isXml = false;
  return (line) => {
    if (line === MARK) {
      isXml = true;
      return [];
    }
    if (!isXml || !line.includes('<Objs ')) return [line];
    try {
      return withoutEnd(line.replaceAll(/<Objs .*?<\/Objs>/g, messages).split(/\r?\n/));
    } catch {
      return [line];
    }
  };
}

/** Returns the texts of errors, warnings and similar objects. Progress has no text. */
function messages(objects: string): string {
  return [...(parseXml(objects).documentElement?.childNodes ?? [])]
    .filter(({ nodeName }) => nodeName === 'S')
    .map(({ textContent }) => textContent ?? '')
    .join('')
    .replaceAll(ENCODED_UNIT, (_, unit: string) => String.fromCharCode(Number.parseInt(unit, 16)));
}

function withoutEnd(lines: readonly string[]): readonly string[] {
  return lines.at(-1) === '' ? lines.slice(0, -1) : lines;
}
