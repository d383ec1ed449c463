import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { html } from '../../src/web/html.ts';

describe('html', () => {
  it('the HTML template escapes values in text and in attributes', () => {
    const name = `"><script>alert('x')</script>&`;
    assert.equal(
      html`<a title="${name}">${name}</a>`.text,
      '<a title="&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;">' +
        '&quot;&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;</a>',
    );
  });

  it('the HTML template accepts other templates, lists of them, and nothing', () => {
    const items = ['a', 'b'].map((item) => html`<li>${item}</li>`);
    assert.equal(
      html`<ul>${items}</ul>${undefined}${false}${null}${0}`.text,
      '<ul><li>a</li><li>b</li></ul>0',
    );
  });

  it('the HTML template replaces control characters', () => {
    assert.equal(html`${'a\0b\x1bc\td\n'}`.text, 'a\ufffdb\ufffdc\td\n');
  });
});
