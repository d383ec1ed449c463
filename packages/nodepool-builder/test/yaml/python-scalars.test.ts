import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { describe, it } from 'node:test';
import { parseYaml } from '../../src/yaml/yaml-document.ts';

/** Script that prints a document as Debian's PyYAML reads it. Keys and scalars are printed by `str()`, except null. */
const PYTHON = `
import json, sys, yaml
def text(node):
    if isinstance(node, dict):
        return {str(key): text(value) for key, value in node.items()}
    if isinstance(node, list):
        return [text(item) for item in node]
    return None if node is None else str(node)
print(json.dumps([text(yaml.safe_load(document)) for document in json.load(sys.stdin)]))
`;

function readByPython(documents: readonly string[]): readonly unknown[] {
  const input = JSON.stringify(documents);
  return JSON.parse(execFileSync('/usr/bin/python3', ['-c', PYTHON], { input, encoding: 'utf8' }));
}

/** Schema of a document whose scalars all become text. */
const TEXTS = {
  format: 'text',
  get items() {
    return this;
  },
  get additionalProperties() {
    return this;
  },
} as const;

/** Scalars without spaces, by kind. */
const PLAIN = `15.0 15.10 22.04 1.0e+1 1.e+3 1e3 1e400 1.0e+400 .5 -.5 +1.5 -0.0 0.0 1. 0.1_0
  1_000 1_000.5 1_0:30 _1 1__0 .inf -.inf +.INF .nan .NaN nan inf 1:30 1:30.5 01:30 190:20:30 190:20:30.15 1:60 -1:30
  010 0o10 08 00 0_7 0x1F -0x1f 0xG 0b101 0b_1 0b2 +1 -1 0 1,000 1.0.0
  12345678901234567890 -98765432109876543210 0xFFFFFFFFFFFFFFFFFF 9007199254740993
  1234567890123456.0 12345678901234567.0 0.0001 0.00001 1.5e-5 1.0e+15 1.0e+16 5.0e-324 1.7976931348623157e+308
  3.14159265358979323846 123456789.123456789 100000000000000000000000.0
  yes Yes YES no on Off true FALSE tRue y N ~ null Null nUll None
  2016-01-01 2016-1-1 2016-01-01T10:00:00Z 2016-01-01T10:00:00.000-00:00 2016-01-01t1:02:03. 12-25
  "15.0" 'yes' "010" "\\x41"`;

const SCALARS: readonly string[] = PLAIN.split(/\s+/).concat(
  ['', 'a b', '2016-01-01 10:00:00', '2016-1-1 1:00:00.5 +2', '2016-01-01 10:00:00.123456789 -05:30'],
  [
    '!!str 15.0',
    '!!str yes',
    '!!float 15',
    '!!int "15"',
    '!!bool "yes"',
    '|\n  15.0',
    '>-\n  yes',
    '|-\n  010',
  ],
  ['!!binary aGVsbG8=', '!!binary AP8nCg==', '!!binary JyI='],
);

const DOCUMENTS: readonly string[] = [
  'a: &a {r: 15.0, s: 010}\nb: {<<: *a, s: 1.0e+1}\nc: {s: 7, <<: *a}\nd: *a\n',
  'a: &a {r: 15.0, n: 1}\nb: &b {r: 16.0, m: 2}\nc: {<<: [*a, *b]}\nd: {<<: [*b, *a], n: 9}\n',
  'a: &a {r: 15.0}\nb: &b {<<: *a, t: 1_0}\nc: &c {<<: *b, u: yes}\nd: {<<: [*c, {r: 1.10}]}\n',
  'a: &a {r: 15.0, s: 1}\nb: &b {r: 16.0}\nc:\n  <<: *a\n  x: 1\n  <<: *b\n',
  'a: &a 15.0\nb: [*a, [*a, {k: *a}]]\n? *a\n: aliased key\n',
  '15.0: float\n010: octal\nyes: boolean\n2016-01-01: date\n~: nothing\n"15.00": text\n12345678901234567890: long\n',
  '{1: a, 1.0: b, true: c}\n'.replace('1.0', '2.0').replace('true', 'no'),
  'a: {"<<": text, b: <<x}\n',
  'a: 1\na: 2.0\n',
  'x: {__proto__: 1.0, constructor: 2.0}\n',
];

describe('YAML of nodepool', () => {
  it('YAML is read with PyYAML’s scalars, written as Python writes them', () => {
    const documents = SCALARS.flatMap((scalar) => [
      `- ${scalar}\n`,
      `k: ${scalar}\n`,
      `a: &a\n - ${scalar.replaceAll('\n', '\n  ')}\nb: *a\n`,
      `a: &a\n  k: ${scalar.replaceAll('\n', '\n  ')}\nb:\n  <<: *a\n`,
    ]);
    const expected = readByPython(documents);
    for (const [index, text] of documents.entries()) {
      assert.deepEqual(parseYaml('test.yaml', text).fitted(TEXTS).value, expected[index], text);
    }
  });

  it('YAML is read with PyYAML’s aliases, merges and keys', () => {
    const expected = readByPython(DOCUMENTS);
    for (const [index, text] of DOCUMENTS.entries()) {
      const { value } = parseYaml('test.yaml', text, { duplicateKeys: 'last' }).fitted(TEXTS);
      assert.equal(JSON.stringify(sorted(value)), JSON.stringify(sorted(expected[index])), text);
    }
  });

  const refused: readonly (readonly [text: string, reason: RegExp])[] = [
    ['a: &a [*a]\n', /recursive alias "a"/],
    ['a: &a {b: *a}\n', /recursive alias "a"/],
    ['a: {<<: 5}\n', /"<<" needs a mapping or a list of mappings/],
    ['a: {<<: [{b: 1}, 5]}\n', /"<<" needs a mapping or a list of mappings/],
    ['? [a]\n: b\n', /a key must not be a list or a mapping/],
    ['a: *b\n', /unidentified alias "b"/],
    ['a: !!python/name:os.system x\n', /unknown scalar tag/],
    ['a: 1\na: 2\n', /duplicated mapping key/],
  ];
  for (const [text, reason] of refused) {
    it(`YAML that contains ${JSON.stringify(text)} is rejected`, () =>
      assert.throws(() => parseYaml('test.yaml', text), reason));
  }
});

/** Returns the value with its keys in alphabetical order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.entries(value)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, field]) => [key, sorted(field)]);
}
