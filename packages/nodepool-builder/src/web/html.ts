/** HTML that is safe to send, because every value in it is escaped. */
export class Html {
  readonly text: string;

  /** @param text trusted HTML */
  constructor(text: string) {
    this.text = text;
  }
}

/** A value in a template. Text is escaped; `undefined`, `null` and `false` become empty. */
export type Value = Html | string | number | undefined | null | false | readonly Value[];

/** Template tag for HTML. It escapes every value, in text and in quoted attributes. */
export function html(strings: TemplateStringsArray, ...values: readonly Value[]): Html {
  let text = strings[0] ?? '';
  for (const [index, value] of values.entries()) text += render(value) + (strings[index + 1] ?? '');
  return new Html(text);
}

function render(value: Value): string {
  if (value instanceof Html) return value.text;
  if (typeof value === 'string' || typeof value === 'number') return escapeHtml(String(value));
  return value ? value.map(render).join('') : '';
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/**
 * Escapes text, and replaces control characters and characters that change the writing direction, which a message may
 * contain.
 */
export function escapeHtml(text: string): string {
  return text
    .replaceAll(/[&<>"']/g, (character) => ENTITIES[character] ?? '')
    .replaceAll(/[^\P{Cc}\n\t]|\p{Bidi_Control}/gu, '\ufffd');
}
