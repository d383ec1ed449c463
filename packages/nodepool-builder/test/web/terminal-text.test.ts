import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { terminalHtml } from '../../src/web/terminal-text.ts';

describe('terminalHtml', () => {
  const cases: readonly (readonly [what: string, text: string, html: string])[] = [
    ['escapes markup', '<img src=x onerror=alert(1)>&', '&lt;img src=x onerror=alert(1)&gt;&amp;'],
    ['shows colours as classes', '\x1b[1;31merror\x1b[0m: x', '<span class="c-bold c-red">error</span>: x'],
    ['shows colours that a build log has escaped', '\\x1b[31mred\\x1b[0m', '<span class="c-red">red</span>'],
    ['shows bright colours', '\x1b[92mok\x1b[39m.', '<span class="c-green">ok</span>.'],
    ['skips the parameters of other palettes', '\x1b[38;5;196;1mx', '<span class="c-bold">x</span>'],
    ['skips the parameters of true colours', '\x1b[48;2;1;2;31mx', 'x'],
    ['begins each line without colour', '\x1b[31ma\nb', '<span class="c-red">a</span>\nb'],
    ['contains no cursor moves and erasures', 'a\x1b[2K\x1b[1;5Hb\x1b[?25l', 'ab'],
    ['contains no window titles and links', '\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b', 'ab'],
    ['contains no other control characters', 'a\x00\x08\x07b\x9b31m', 'ab'],
    ['shows the last state of a progress bar', '10 %\r50 %\r100 %\r\ndone', '100 %\ndone'],
    ['escapes markup within colours', '\x1b[31m"><b>', '<span class="c-red">&quot;&gt;&lt;b&gt;</span>'],
  ];
  for (const [what, text, expected] of cases) {
    it(`terminal output converted to HTML ${what}`, () => assert.equal(terminalHtml(text), expected));
  }

  it('terminal output with hostile text is converted to HTML quickly', () => {
    for (const piece of ['\x1b]', '\x1b[', '\x1b[1;', '\r', '\x1bP']) {
      const start = performance.now();
      terminalHtml(piece.repeat(100_000));
      assert.ok(performance.now() - start < 5000, JSON.stringify(piece));
    }
  });
});
