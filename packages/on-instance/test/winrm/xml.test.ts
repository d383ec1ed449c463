import { equal, throws } from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseXml, xml } from '../../src/winrm/xml.ts';

describe('xml', () => {
  it('escapes text in any position', () => {
    const text = `</a><b c="&amp;"> 'ü' ]]>\r\n`;
    const root = parseXml(xml`<a b="${text}">${text}</a>`.text).documentElement;
    equal(root?.textContent, text);
    equal(root?.getAttribute('b')?.replaceAll(/\s/g, ' '), text.replaceAll(/\s/g, ' '));
  });

  it('inserts pieces of XML unchanged', () => {
    equal(xml`<a>${[xml`<b/>`, xml`<c>${'<'}</c>`]}</a>`.text, '<a><b/><c>&lt;</c></a>');
  });

  for (const [what, text] of [
    ['a control character', 'a\u0000'],
    ['half a character', '\uD800'],
  ] as const) {
    it(`refuses ${what}`, () => {
      throws(() => xml`<a>${text}</a>`, { code: 'invalid-configuration' });
    });
  }
});

describe('parseXml', () => {
  for (const [what, text] of [
    ['an entity of its own', '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'],
    ['a file', '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/hostname">]><a>&b;</a>'],
    ['what is no XML', '<html><br></html>'],
    ['nothing', ''],
  ] as const) {
    it(`refuses ${what}`, () => {
      throws(() => parseXml(text), { name: 'ParseError' });
    });
  }
});
