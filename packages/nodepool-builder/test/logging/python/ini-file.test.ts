import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type IniSection, parseIni } from '../../../src/logging/python/ini-file.ts';

function texts(section: IniSection | undefined): Record<string, unknown> {
  assert.ok(section);
  return Object.fromEntries([...section.values.keys()].map((key) => [key, section.text(key)]));
}

describe('an INI file', () => {
  it('an INI file has sections, values after = or :, comments, and values on several lines', () => {
    const file = parseIni(
      'logging.conf',
      `# a comment
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
`,
    );
    assert.deepEqual(texts(file.get('one')), {
      key: 'value',
      other: 'a:b=c',
      empty: '',
      args: "('file',\n'H',\n8)",
    });
    assert.deepEqual(file.get('two words')?.values.get('format'), { text: '%(asctime)s', line: 12 });
    assert.match(file.get('two words')?.error('other', 'x').message ?? '', /^logging\.conf:11:1: x/);
  });

  it('an INI file interpolates values of the section and of [DEFAULT]', () => {
    const file = parseIni(
      'logging.conf',
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
    it(`an INI file that contains ${JSON.stringify(text)} is rejected`, () => {
      assert.throws(() => parseIni('logging.conf', text), {
        name: 'ConfigurationError',
        message: new RegExp(`^logging\\.conf:${line}:1: expected`),
      });
    });
  }
});
