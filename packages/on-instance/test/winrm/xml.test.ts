import { equal, throws } from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseXml, xml } from '../../src/winrm/xml.ts';

describe('xml', () => {
  it('the XML template escapes text in any position', () => {
    const text = `</a><b c="&amp;"> 'ü' ]]>\r\n`;
    const root = parseXml(xml`<a b="${text}">${text}</a>`.text).documentElement;
    equal(root?.textContent, text);
    equal(root?.getAttribute('b')?.replaceAll(/\s/g, ' '), text.replaceAll(/\s/g, ' '));
  });

  it('the XML template inserts pieces of XML unchanged', () => {
    equal(xml`<a>${[xml`<b/>`, xml`<c>${'<'}</c>`]}</a>`.text, '<a><b/><c>&lt;</c></a>');
  });

  for (const [what, text] of [
    ['a control character', 'a\u0000'],
    ['half a character', '\uD800'],
  ] as const) {
    it(`the XML template rejects ${what}`, () => {
      throws(() => xml`<a>${text}</a>`, { code: 'invalid-configuration' });
    });
  }
});

describe('parseXml', () => {
  for (const [what, text] of [
    ['a custom entity', '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'],
    ['an entity that reads a file', '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/hostname">]><a>&b;</a>'],
    ['text that is not XML', '<html><br></html>'],
    ['an empty text', ''],
  ] as const) {
    it(`the XML parser rejects ${what}`, () => {
      throws(() => parseXml(text), { name: 'ParseError' });
    });
  }
});
