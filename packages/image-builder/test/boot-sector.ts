/** Where a PC's BIOS puts the first sector of a disk, and begins to run it; `dl` is the disk. */
const ORIGIN = 0x7c00;

/** Writes itself to the second sector of the disk, and the text to the first serial port. */
const BEGIN = [
  '31c0', //         xor  ax, ax
  '8ed8', //         mov  ds, ax
  '8ec0', //         mov  es, ax
  'b80103', //       mov  ax, 0301          write one sector
  'bb007c', //       mov  bx, 7c00          from here
  'b90200', //       mov  cx, 2             to cylinder 0, sector 2
  'b600', //         mov  dh, 0             of head 0
  'cd13', //         int  13
  'be0000', //       mov  si, text          the address is filled in
  'ac', //     next: lodsb
  '84c0', //         test al, al
  '7406', //         jz   end
  'baf803', //       mov  dx, 3f8
  'ee', //           out  dx, al
  'ebf5', //         jmp  next
].join('');

/** Where the address of the text stands in {@link BEGIN}. */
const TEXT_ADDRESS = 20;

/** What comes at the end. */
const ENDS = {
  halt: [
    'fa', //     end:  cli
    'f4', //           hlt
    'ebfd', //         jmp  end
  ].join(''),
  reset: [
    'b0fe', //   end:  mov  al, fe            pulse the reset line
    'e664', //         out  64, al            by the keyboard controller
    'ebfe', //         jmp  here
  ].join(''),
};

/** What marks a sector that can be booted: its last two bytes. */
const SIGNATURE = Buffer.from('55aa', 'hex');

const SECTOR = 512;

/** A BIOS finds no disk in much less. */
const DISK = 1024 * 1024;

/**
 * A raw disk. When it is booted it writes to itself, and a text to the serial port; then it does nothing for ever, or
 * has the machine reset.
 */
export function bootableDisk(text: string, end: keyof typeof ENDS = 'halt'): Buffer {
  const code = Buffer.from(BEGIN + ENDS[end], 'hex');
  code.writeUInt16LE(ORIGIN + code.length, TEXT_ADDRESS);
  const program = Buffer.concat([code, Buffer.from(`${text}\0`, 'latin1')]);
  if (program.length > SECTOR - SIGNATURE.length) throw new Error('the text is too long for a sector');
  const disk = Buffer.alloc(DISK);
  program.copy(disk);
  SIGNATURE.copy(disk, SECTOR - SIGNATURE.length);
  return disk;
}
