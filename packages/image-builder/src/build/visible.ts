/** Control characters except tab, line separators, and characters that change the writing direction. */
const CONTROL = /(?!\t)\p{Cc}|\p{Zl}|\p{Zp}|\p{Bidi_Control}/gu;

/** Replaces control characters by their codes, so that a terminal does not interpret them. */
export function visible(text: string): string {
  return text.replace(CONTROL, (character) => {
    const code = character.charCodeAt(0).toString(16);
    return code.length > 2 ? `\\u${code.padStart(4, '0')}` : `\\x${code.padStart(2, '0')}`;
  });
}
