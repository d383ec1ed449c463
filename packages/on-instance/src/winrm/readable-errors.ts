import { parseXml } from './xml.ts';

const MARK = '#< CLIXML';

/** Each stands for one UTF-16 unit. */
const ENCODED_UNIT = /_x([0-9A-Fa-f]{4})_/g;

/**
 * Makes what PowerShell writes to its error stream readable: called by a program, it writes objects there, in XML
 * ([MS-PSRP], section 2.2.5), and among them the progress of whatever it does.
 */
export class ReadableErrors {
  #isXml = false;

  /** @returns the lines that a person would see in the place of this one. */
  read(line: string): readonly string[] {
    if (line === MARK) {
      this.#isXml = true;
      return [];
    }
    if (!this.#isXml || !line.includes('<Objs ')) return [line];
    try {
      return withoutEnd(line.replaceAll(/<Objs .*?<\/Objs>/g, messages).split(/\r?\n/));
    } catch {
      return [line];
    }
  }
}

/** What is said in errors, warnings and the like. Progress has no text of its own. */
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
