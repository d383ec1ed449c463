import { ImageError } from '@nodepool-builder/image-builder';
import { DOMParser, type Document, onErrorStopParsing } from '@xmldom/xmldom';

/** A piece of a document, well-formed. */
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

/** What no document can hold, not even escaped (XML 1.0, section 2.2). */
const NO_CHARACTER = /[^\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/u;

/**
 * Tag of templates: what is put in is text or, as {@link Xml}, a piece. Text stays text, whatever is in it.
 *
 * @throws ImageError `invalid-configuration` if no document can hold the text
 */
export function xml(parts: TemplateStringsArray, ...values: readonly (string | Xml | readonly Xml[])[]): Xml {
  return new Xml(parts.map((part, index) => part + written(values[index] ?? '')).join(''));
}

/** @throws Error if it is not well-formed. An entity is nothing that this parser would look up. */
export function parseXml(text: string): Document {
  return new DOMParser({ onError: onErrorStopParsing }).parseFromString(text, 'text/xml');
}

function written(value: string | Xml | readonly Xml[]): string {
  if (value instanceof Xml) return value.text;
  if (typeof value !== 'string') return value.map(({ text }) => text).join('');
  if (NO_CHARACTER.test(value)) {
    throw new ImageError(
      'invalid-configuration',
      'a command for WinRM has a control character in it, which cannot be sent; remove it',
    );
  }
  return value.replaceAll(/[<>&"\r]/g, (character) => ESCAPES[character] ?? '');
}
