import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { IniError, type IniSection, interpolated, parseIni } from '../../../src/logging/python/ini-file.ts';

function texts(section: IniSection | undefined): Record<string, string> {
  assert.ok(section);
  return Object.fromEntries([...section.values].map(([key, value]) => [key, interpolated(section, value)]));
}

describe('an INI file', () => {
  it('has sections, values after = or :, comments, and values on several lines', () => {
    const file = parseIni(`# a comment
; another
[one]
Key = value ; of Python 2
other: a:b=c
empty=
args=('file',
      'H',
      8)

[two words]
format=%(asctime)s
`);
    assert.deepEqual(texts(file.get('one')), {
      key: 'value',
      other: 'a:b=c',
      empty: '',
      args: "('file',\n'H',\n8)",
    });
    assert.deepEqual(file.get('two words')?.values.get('format'), { text: '%(asctime)s', line: 12 });
    assert.equal(file.get('two words')?.line, 11);
  });

  it('interpolates values of the section and of [DEFAULT]', () => {
    const file = parseIni(
      '[DEFAULT]\nlogs=/var/log\n[a]\nname=b\npath=%(logs)s/%(name)s.log\nrate=100%%\nodd=%(none)s\n',
    );
    assert.deepEqual(texts(file.get('a')), {
      logs: '/var/log',
      name: 'b',
      path: '/var/log/b.log',
      rate: '100%',
      odd: '%(none)s',
    });
  });

  for (const [text, line] of [
    ['key=value\n', 1],
    ['[a]\nnonsense\n', 2],
  ] as const) {
    it(`cannot be ${JSON.stringify(text)}`, () => {
      assert.throws(
        () => parseIni(text),
        (error) => error instanceof IniError && error.line === line,
      );
    });
  }
});
