/** Where a PC's BIOS puts the first sector of a disk, and begins to run it. */
const ORIGIN = 0x7c00;

/** Writes the text behind it. */
const WRITE = [
  '31c0', //         xor  ax, ax
  '8ed8', //         mov  ds, ax
  'be187c', //       mov  si, text          what follows all of the code, at 7c18
  'ac', //     next: lodsb
  '84c0', //         test al, al
  '7406', //         jz   end
  'baf803', //       mov  dx, 3f8           the first serial port
  'ee', //           out  dx, al
  'ebf5', //         jmp  next
];

/** What comes at the end; both are as long. */
const ENDS = {
  halt: [
    'fa', //     end:  cli
    'f4', //           hlt
    'ebfd', //         jmp  end
    '9090', //         nop, nop
  ],
  reset: [
    'b0fe', //   end:  mov  al, fe            "pulse the reset line"
    'e664', //         out  64, al            to the keyboard controller
    'ebfe', //         jmp  here
  ],
};

/** What marks a sector that can be booted: its last two bytes. */
const SIGNATURE = Buffer.from('55aa', 'hex');

const SECTOR = 512;

/** A BIOS finds no disk in less. */
const DISK = 1024 * 1024;

/**
 * A raw disk that writes a text to the serial port when it is booted, and then does nothing for ever, or has the
 * machine reset.
 */
export function bootableDisk(text: string, end: keyof typeof ENDS = 'halt'): Buffer {
  const code = Buffer.from([...WRITE, ...ENDS[end]].join(''), 'hex');
  if (code.readUInt16LE(5) !== ORIGIN + code.length) throw new Error('the text is not where the code looks');
  const program = Buffer.concat([code, Buffer.from(`${text}\0`, 'latin1')]);
  if (program.length > SECTOR - SIGNATURE.length) throw new Error('the text is too long for a sector');
  const disk = Buffer.alloc(DISK);
  program.copy(disk);
  SIGNATURE.copy(disk, SECTOR - SIGNATURE.length);
  return disk;
}
