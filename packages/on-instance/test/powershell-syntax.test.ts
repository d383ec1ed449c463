import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Language, Parser } from 'web-tree-sitter';
import { POWERSHELL_SCRIPTS } from '../src/powershell-scripts.ts';
import { PUT_COMMAND } from '../src/winrm/put-files.ts';

// PowerShell does not run here. Editors use this grammar to colour and fold it.
await Parser.init();
const grammar = fileURLToPath(import.meta.resolve('tree-sitter-powershell/tree-sitter-powershell.wasm'));
const parser = new Parser().setLanguage(await Language.load(grammar));

/** Returns the lines of a script that are not PowerShell. */
function wrongLines(script: string): string[] {
  const lines = script.replace(/^\uFEFF/, '').split('\n');
  const tree = parser.parse(lines.join('\n')) ?? assert.fail('nothing could be parsed');
  const wrong = tree.rootNode.descendantsOfType('ERROR').map(({ startPosition }) => lines[startPosition.row]);
  return wrong.length === 0 && tree.rootNode.hasError ? ['something is missing'] : wrong.map(String);
}

const { prepare, step, clean, powerOff, sysprep = assert.fail() } = POWERSHELL_SCRIPTS;
const [, putFile = ''] = / -EncodedCommand (.*)/.exec(PUT_COMMAND) ?? [];

const SCRIPTS: Readonly<Record<string, string>> = {
  prepare,
  step: step('Get-Item C:\\ | Out-Null\nexit 3', { NODEPOOL_A: "it's ‘so’", B: 'two\nlines $x "' }),
  clean: clean('AAAAC3NzaC1lZDI1NTE5'),
  'power off': powerOff,
  sysprep,
  'put a file': Buffer.from(putFile, 'base64').toString('utf16le'),
};

for (const [name, script] of Object.entries(SCRIPTS)) {
  test(`the PowerShell script "${name}" is valid`, () => {
    assert.notEqual(script, '');
    assert.deepEqual(wrongLines(script), []);
  });
}

test('the PowerShell parser finds an invalid step', () => {
  assert.notDeepEqual(wrongLines(step('if (1 {', {})), []);
});
