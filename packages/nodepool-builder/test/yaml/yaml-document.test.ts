import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ConfigurationError } from '../../src/yaml/diagnostic.ts';
import { parseYaml } from '../../src/yaml/yaml-document.ts';

const TEXT = `a: 1
list:
  - name: first
    deep: {x: [1, 2]}
  -   name: second
"quoted/key": ~
base: &base {port: 1}
merged:
  <<: *base
alias: *base
`;

describe('a YAML document', () => {
  const document = parseYaml('test.yaml', TEXT);

  it('a YAML document is read as PyYAML reads it', () => {
    assert.deepEqual(parseYaml('test.yaml', 'a: yes\nb: 010\nc: ~\nd: "5"\n').value, {
      a: true,
      b: 8,
      c: null,
      d: '5',
    });
    assert.deepEqual(parseYaml('test.yaml', '[y, N, on, 01:30, 1:30, 1_000]').value, [
      'y',
      'N',
      true,
      '01:30',
      90,
      1000,
    ]);
    assert.equal(parseYaml('test.yaml', '').value, undefined);
  });

  const positions: readonly (readonly [pointer: string, line: number, column: number])[] = [
    ['', 1, 1],
    ['/a', 1, 1],
    ['/list', 2, 1],
    ['/list/0', 3, 5],
    ['/list/0/deep', 4, 5],
    ['/list/0/deep/x/1', 4, 19],
    ['/list/1', 5, 7],
    ['/list/1/name', 5, 7],
    ['/quoted~1key', 6, 2],
    ['/merged/port', 8, 1],
    ['/alias/port', 10, 1],
    ['/not/there', 1, 1],
  ];
  for (const [pointer, line, column] of positions) {
    it(`a YAML document knows the position of ${pointer || 'the whole document'}`, () => {
      assert.deepEqual(document.positionOf(pointer), { line, column });
    });
  }

  it('a YAML document ignores a number in a value that a duplicate key replaces', () => {
    const text = 'diskimages: [{name: a}, {name: b, release: 15.0}]\ndiskimages: [{name: a}]\n';
    const { value } = parseYaml('test.yaml', text, { duplicateKeys: 'last' });
    assert.deepEqual(value, { diskimages: [{ name: 'a' }] });
  });

  it('the error for a YAML document names the line', () => {
    assert.throws(
      () => parseYaml('test.yaml', 'a: 1\nb: [\n'),
      (error) => error instanceof ConfigurationError && error.diagnostics[0]?.line === 3,
    );
  });
});
