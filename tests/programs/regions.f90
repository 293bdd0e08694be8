! Named and numbered regions from Fortran, three entries of each.
include 'pmmpi.f90'
program regions
  use mpi
  use pmmpi
  implicit none
  integer :: ierr, entry
  call MPI_Init(ierr)
  do entry = 1, 3
    call pmmpi_begin('solve ')
    call execute_command_line('sleep 0.01')
    call pmmpi_end('solve')
    call MPI_Pcontrol(2)
    call execute_command_line('sleep 0.01')
    call MPI_Pcontrol(-2)
  end do
  call MPI_Finalize(ierr)
end program
