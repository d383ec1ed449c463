import assert from 'node:assert/strict';
import { it } from 'node:test';
import { textTable } from '../../src/commands/output.ts';

it('a table shows spaces in place of control characters, but keeps line breaks', async () => {
  const records = [
    { image: 'a', why: 'exit code 1:\tno space\r\nleft' },
    { image: 'b\u001B[31m', why: null },
  ].map(({ image, why }) => ({ 'image-name': image, why }));
  assert.equal(
    await textTable(records, ['IMAGE', 'WHY']),
    ['IMAGE   WHY', 'a       exit code 1: no space', '        left', 'b [31m  -'].join('\n'),
  );
});
