! A probe from Fortran, 100 entries; its two names differ only in blanks at the end.
include 'pmmpi.f90'
program probes
  use mpi
  use pmmpi
  implicit none
  integer :: ierr, entry
  call MPI_Init(ierr)
  do entry = 1, 100
    call pmmpi_probe_begin('solve ')
    call pmmpi_probe_end('solve')
  end do
  call MPI_Finalize(ierr)
end program
