const UNITS = [
  { unit: 'd', seconds: 86_400 },
  { unit: 'h', seconds: 3600 },
  { unit: 'min', seconds: 60 },
  { unit: 's', seconds: 1 },
];

/** Formats an age with its two largest units: `3 d 4 h`. */
export function formatAge(milliseconds: number): string {
  const age = Math.max(0, Math.floor(milliseconds / 1000));
  const first = UNITS.findIndex(({ seconds }) => age >= seconds);
  const parts = UNITS.slice(first)
    .slice(0, 2)
    .map(({ unit, seconds }, index) => {
      const count = Math.floor((index === 0 ? age : age % (UNITS[first]?.seconds ?? 1)) / seconds);
      return count > 0 ? `${count} ${unit}` : '';
    });
  return parts.filter(Boolean).join(' ') || '0 s';
}

/** `1 image`, `3 images`. */
export function counted(count: number | null, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
