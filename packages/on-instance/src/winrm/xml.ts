import { ImageError } from '@nodepool-builder/image-builder';
import { DOMParser, type Document, onErrorStopParsing } from '@xmldom/xmldom';

/** A well-formed piece of a document. */
export class Xml {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

const ESCAPES: Readonly<Record<string, string>> = {
  '<': '&lt;',
  '>': '&gt;',
  '&': '&amp;',
  '"': '&quot;',
  '\r': '&#13;',
};

/** Characters that XML cannot contain, even escaped (XML 1.0, section 2.2). */
const NO_CHARACTER = /[^\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/u;

/**
 * Tag of template literals. Values are text, which is escaped, or pieces of XML.
 *
 * @throws ImageError `invalid-configuration` if XML cannot contain a text
 */
export function xml(parts: TemplateStringsArray, ...values: readonly (string | Xml | readonly Xml[])[]): Xml {
  return new Xml(parts.map((part, index) => part + written(values[index] ?? '')).join(''));
}

/** Parses a document without resolving external entities. @throws Error if the text is not well-formed */
export function parseXml(text: string): Document {
  return new DOMParser({ onError: onErrorStopParsing }).parseFromString(text, 'text/xml');
}

function written(value: string | Xml | readonly Xml[]): string {
  if (value instanceof Xml) return value.text;
  if (typeof value !== 'string') return value.map(({ text }) => text).join('');
  if (NO_CHARACTER.test(value)) {
    throw new ImageError(
      'invalid-configuration',
      'a command for WinRM contains a control character, which cannot be sent; remove it',
    );
  }
  return value.replaceAll(/[<>&"\r]/g, (character) => ESCAPES[character] ?? '');
}
