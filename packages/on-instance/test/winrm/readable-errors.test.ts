import { deepEqual } from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readableErrors } from '../../src/winrm/readable-errors.ts';

const PROGRESS =
  '<Obj S="progress" RefId="0"><TN RefId="0"><T>System.Object</T></TN><MS><S N="SourceId">1</S></MS></Obj>';

function objects(content: string): string {
  return `<Objs Version="1.1.0.1" xmlns="http://schemas.microsoft.com/powershell/2004/04">${content}</Objs>`;
}

function read(...lines: string[]): string[] {
  const readable = readableErrors();
  return lines.flatMap((line) => readable(line));
}

describe('readableErrors', () => {
  it('PowerShell’s error objects are shown as text, without progress', () => {
    const errors = ['no such file &lt;x&gt;_x000D__x000A_', '    + ls Gr_x00FC_n_x000D__x000A_'].map(
      (text) => `<S S="Error">${text}</S>`,
    );
    deepEqual(read('#< CLIXML', objects(PROGRESS) + objects(PROGRESS + errors.join(''))), [
      'no such file <x>',
      '    + ls Grün',
    ]);
  });

  it('PowerShell objects that contain only progress are omitted', () => {
    deepEqual(read('#< CLIXML', objects(PROGRESS)), []);
  });

  it('output before and after PowerShell’s error objects is passed on', () => {
    deepEqual(read(objects('a'), '#< CLIXML', 'plain', `${objects(PROGRESS)}behind`), [
      objects('a'),
      'plain',
      'behind',
    ]);
  });

  it('incomplete PowerShell error objects are passed on', () => {
    deepEqual(read('#< CLIXML', '<Objs <</Objs>'), ['<Objs <</Objs>']);
  });
});
